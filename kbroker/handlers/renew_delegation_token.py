"""RenewDelegationToken 0–2: put off the end of a token, for its owner and its renewers (KIP-48)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kbroker.errors import error_code
from kbroker.pending import Pending, mapped
from kbroker.protocol.errors import ErrorCode
from kbroker.protocol.messages.renew_delegation_token import (
    RenewDelegationTokenRequest,
    RenewDelegationTokenResponse,
)

if TYPE_CHECKING:
    from kbroker.broker import Broker
    from kbroker.requests.context import RequestContext


def handle(
    broker: Broker, request: RenewDelegationTokenRequest, context: RequestContext
) -> RenewDelegationTokenResponse | Pending[RenewDelegationTokenResponse]:
    tokens = broker.resources(context).own_tokens(context.peer)
    renewing = tokens.renew(request.hmac, context.principal, request.renew_period_ms, context.now_ms)
    return mapped(renewing, lambda token: RenewDelegationTokenResponse(expiry_timestamp_ms=token.expires_ms))


def refuse(
    request: RenewDelegationTokenRequest, context: RequestContext, error: BaseException
) -> RenewDelegationTokenResponse:
    code = error_code(error) or ErrorCode.UNKNOWN_SERVER_ERROR
    allowed = code is not ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
    return RenewDelegationTokenResponse(code, expiry_timestamp_ms=0 if allowed else -1)
