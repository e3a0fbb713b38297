"""AlterUserScramCredentials 0: make, change and delete SCRAM users (KIP-554).

A request may alter each user once. Users without an error are altered even if others have one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kbroker.pending import wait
from kbroker.protocol.errors import ApiError, ErrorCode
from kbroker.protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    AlterUserScramCredentialsResult,
)
from kbroker.requests.long_requests import Steps, lazily
from kbroker.security.acls import AclOperation
from kbroker.security.users import Deletion, Upsertion

if TYPE_CHECKING:
    from kbroker.broker import Broker
    from kbroker.requests.context import RequestContext


def handle(
    broker: Broker, request: AlterUserScramCredentialsRequest, context: RequestContext
) -> Steps[AlterUserScramCredentialsResponse]:
    alteration = broker.resources(context).users(AclOperation.ALTER).alteration()
    for gone in request.deletions:
        alteration.take(Deletion(gone.name, gone.mechanism))
        yield None
    for new in request.upsertions:
        alteration.take(Upsertion(new.name, new.mechanism, new.iterations, new.salt, new.salted_password))
        yield None
    yield from wait(alteration.save())
    return AlterUserScramCredentialsResponse(results=lazily(list(alteration.results.items()), _result))


def _result(altered: tuple[str, ApiError | None]) -> AlterUserScramCredentialsResult:
    name, error = altered
    if error is None:
        return AlterUserScramCredentialsResult(name, ErrorCode.NONE, None)
    return AlterUserScramCredentialsResult(name, error.code, str(error))


def refuse(
    request: AlterUserScramCredentialsRequest, context: RequestContext, error: BaseException
) -> AlterUserScramCredentialsResponse:
    """There is no place for an error but beside each user."""
    from kbroker.errors import error_code

    code = error_code(error) or ErrorCode.UNKNOWN_SERVER_ERROR
    names = dict.fromkeys(
        [each.name for each in request.deletions] + [each.name for each in request.upsertions]
    )
    return AlterUserScramCredentialsResponse(
        results=[AlterUserScramCredentialsResult(name, code, code.message) for name in names]
    )
