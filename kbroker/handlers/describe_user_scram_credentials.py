"""DescribeUserScramCredentials 0: mechanisms and iterations of the stored users (KIP-554). No secrets."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kbroker.protocol.errors import ErrorCode
from kbroker.protocol.messages.describe_user_scram_credentials import (
    CredentialInfo,
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
    DescribeUserScramCredentialsResult,
)
from kbroker.requests.long_requests import lazily
from kbroker.security.acls import AclOperation
from kbroker.security.scram_credentials import MECHANISM_OF

if TYPE_CHECKING:
    from kbroker.broker import Broker
    from kbroker.requests.context import RequestContext
    from kbroker.security.users import Users


def handle(
    broker: Broker, request: DescribeUserScramCredentialsRequest, context: RequestContext
) -> DescribeUserScramCredentialsResponse:
    users = broker.resources(context).users(AclOperation.DESCRIBE)
    asked: dict[str, int] = {}
    for user in request.users or ():
        asked[user.name] = asked.get(user.name, 0) + 1
    names = asked or dict.fromkeys(users.names(), 1)
    return DescribeUserScramCredentialsResponse(
        results=lazily(list(names.items()), lambda asked: _described(users, asked[0], twice=asked[1] > 1))
    )


def _described(users: Users, name: str, *, twice: bool) -> DescribeUserScramCredentialsResult:
    if twice:
        return DescribeUserScramCredentialsResult(
            name,
            ErrorCode.DUPLICATE_RESOURCE,
            f"Cannot describe SCRAM credentials for the same user twice in a single request: {name}",
        )
    credentials = users.credentials(name)
    if not credentials:
        return DescribeUserScramCredentialsResult(
            name,
            ErrorCode.RESOURCE_NOT_FOUND,
            f"Attempt to describe a user credential that does not exist: {name}",
        )
    return DescribeUserScramCredentialsResult(
        name,
        credential_infos=[
            CredentialInfo(number, credentials[mechanism].iterations)
            for number, mechanism in MECHANISM_OF.items()
            if mechanism in credentials
        ],
    )
