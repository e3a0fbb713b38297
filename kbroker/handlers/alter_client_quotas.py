"""AlterClientQuotas 0–1: set and remove quotas of users, client ids and IP addresses (KIP-546, KIP-612).

Each entity is taken or refused as a whole.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kbroker.errors import describe
from kbroker.protocol.errors import ApiError, ErrorCode
from kbroker.protocol.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
    EntityData,
    RequestEntryData,
    ResponseEntryData,
)
from kbroker.quotas.entities import Entity, entity_of
from kbroker.quotas.table import Alteration, Outcomes
from kbroker.requests.long_requests import Steps
from kbroker.security.acls import AclOperation

if TYPE_CHECKING:
    from kbroker.broker import Broker
    from kbroker.requests.context import RequestContext

_MOST_CHANGES = 10_000  # in one request, as in Kafka


def handle(
    broker: Broker, request: AlterClientQuotasRequest, context: RequestContext
) -> Steps[AlterClientQuotasResponse]:
    quotas = broker.resources(context).quotas(AclOperation.ALTER_CONFIGS)
    if sum(len(entry.ops) for entry in request.entries) > _MOST_CHANGES:
        raise ApiError(ErrorCode.POLICY_VIOLATION, f"More than {_MOST_CHANGES} quotas are altered at once.")
    alterations: list[Alteration] = []
    for entry in request.entries:
        changes = [(op.key, None if op.remove else op.value) for op in entry.ops]
        alterations.append(Alteration(_entity(entry), changes))
        yield None
    return _response((yield from quotas.alter(alterations, validate_only=request.validate_only)))


def refuse(
    request: AlterClientQuotasRequest, context: RequestContext, error: BaseException
) -> AlterClientQuotasResponse:
    code, message = describe(error)
    entities = dict.fromkeys(map(_entity, request.entries))
    return AlterClientQuotasResponse(
        entries=[ResponseEntryData(code, message, _data(entity)) for entity in entities]
    )


def _response(outcomes: Outcomes) -> AlterClientQuotasResponse:
    entries = []
    for entity, error in outcomes.items():
        code, message = (ErrorCode.NONE, None) if error is None else describe(error)
        entries.append(ResponseEntryData(code, message, _data(entity)))
    return AlterClientQuotasResponse(entries=entries)


def _entity(entry: RequestEntryData) -> Entity:
    return entity_of((part.entity_type, part.entity_name) for part in entry.entity)


def _data(entity: Entity) -> list[EntityData]:
    return [EntityData(type_, name) for type_, name in entity]
