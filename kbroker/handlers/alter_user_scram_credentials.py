"""AlterUserScramCredentials 0: make, change and delete SCRAM users (KIP-554).

A request may alter each user once. Users without an error are altered even if others have one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kbroker.pending import Pending, mapped
from kbroker.protocol.errors import ErrorCode
from kbroker.protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    AlterUserScramCredentialsResult,
)
from kbroker.security.acls import AclOperation
from kbroker.security.users import Deletion, Upsertion

if TYPE_CHECKING:
    from kbroker.broker import Broker
    from kbroker.requests.context import RequestContext


def handle(
    broker: Broker, request: AlterUserScramCredentialsRequest, context: RequestContext
) -> AlterUserScramCredentialsResponse | Pending[AlterUserScramCredentialsResponse]:
    results, stored = (
        broker.resources(context)
        .users(AclOperation.ALTER)
        .alter(
            [Deletion(each.name, each.mechanism) for each in request.deletions],
            [
                Upsertion(each.name, each.mechanism, each.iterations, each.salt, each.salted_password)
                for each in request.upsertions
            ],
        )
    )
    response = AlterUserScramCredentialsResponse(
        results=[
            AlterUserScramCredentialsResult(name, ErrorCode.NONE, None)
            if error is None
            else AlterUserScramCredentialsResult(name, error.code, str(error))
            for name, error in results.items()
        ]
    )
    return mapped(stored, lambda _: response)


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
