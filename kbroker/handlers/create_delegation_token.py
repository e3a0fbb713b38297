"""CreateDelegationToken 0–3: a token for who asks (KIP-48), from version 3 on also for others (KIP-373)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kbroker.errors import error_code
from kbroker.pending import Pending, mapped
from kbroker.protocol.errors import ApiError, ErrorCode
from kbroker.protocol.messages.create_delegation_token import (
    CreateDelegationTokenRequest,
    CreateDelegationTokenResponse,
)
from kbroker.security.principal import Principal

if TYPE_CHECKING:
    from kbroker.broker import Broker
    from kbroker.requests.context import RequestContext
    from kbroker.security.delegation_tokens import DelegationToken


def handle(
    broker: Broker, request: CreateDelegationTokenRequest, context: RequestContext
) -> CreateDelegationTokenResponse | Pending[CreateDelegationTokenResponse]:
    owner = _owner(request, context)
    tokens = broker.resources(context).tokens_for(context.peer, owner)
    renewers = [Principal(each.principal_type, each.principal_name) for each in request.renewers]
    if any(renewer.kind != "User" for renewer in renewers):
        raise ApiError(ErrorCode.INVALID_PRINCIPAL_TYPE)

    def created(token: DelegationToken) -> CreateDelegationTokenResponse:
        return CreateDelegationTokenResponse(
            **_principals(owner, context),
            issue_timestamp_ms=token.issued_ms,
            expiry_timestamp_ms=token.expires_ms,
            max_timestamp_ms=token.max_ms,
            token_id=token.token_id,
            hmac=tokens.hmac_of(token),
        )

    creation = tokens.create(owner, context.principal, renewers, request.max_lifetime_ms, context.now_ms)
    return mapped(creation, created)


def refuse(
    request: CreateDelegationTokenRequest, context: RequestContext, error: BaseException
) -> CreateDelegationTokenResponse:
    owner = _owner(request, context)
    code = error_code(error) or ErrorCode.UNKNOWN_SERVER_ERROR
    time_ms = 0 if code is ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED else -1
    return CreateDelegationTokenResponse(
        **_principals(owner, context),
        error_code=code,
        issue_timestamp_ms=time_ms,
        expiry_timestamp_ms=time_ms,
        max_timestamp_ms=time_ms,
    )


def _owner(request: CreateDelegationTokenRequest, context: RequestContext) -> Principal:
    if not request.owner_principal_name:
        return context.principal
    return Principal(request.owner_principal_type or "", request.owner_principal_name)


def _principals(owner: Principal, context: RequestContext) -> dict[str, Any]:
    named = {"principal_type": owner.kind, "principal_name": owner.name}
    if context.api_version >= 3:
        named["token_requester_principal_type"] = context.principal.kind
        named["token_requester_principal_name"] = context.principal.name
    return named
