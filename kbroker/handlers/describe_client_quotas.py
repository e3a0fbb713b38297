"""DescribeClientQuotas 0–1: the quotas that are set, of the entities that a filter finds (KIP-546)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kbroker.errors import describe
from kbroker.protocol.messages.describe_client_quotas import (
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
    EntityData,
    EntryData,
    ValueData,
)
from kbroker.quotas.table import Component
from kbroker.requests.long_requests import Steps, lazily
from kbroker.security.acls import AclOperation

if TYPE_CHECKING:
    from collections.abc import Mapping

    from kbroker.broker import Broker
    from kbroker.quotas.entities import Entity
    from kbroker.requests.context import RequestContext


def handle(
    broker: Broker, request: DescribeClientQuotasRequest, context: RequestContext
) -> Steps[DescribeClientQuotasResponse]:
    quotas = broker.resources(context).quotas(AclOperation.DESCRIBE_CONFIGS)
    components = [Component(each.entity_type, each.match_type, each.match) for each in request.components]
    found = []
    for each in quotas.describe(components, strict=request.strict):
        if each is not None:
            found.append(each)
        yield None
    return DescribeClientQuotasResponse(entries=lazily(found, _entry))


def refuse(
    request: DescribeClientQuotasRequest, context: RequestContext, error: BaseException
) -> DescribeClientQuotasResponse:
    code, message = describe(error)
    return DescribeClientQuotasResponse(error_code=code, error_message=message, entries=None)


def _entry(found: tuple[Entity, Mapping[str, float]]) -> EntryData:
    entity, values = found
    return EntryData(
        [EntityData(type_, name) for type_, name in entity],
        [ValueData(name, value) for name, value in values.items()],
    )
