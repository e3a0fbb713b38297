"""ExpireDelegationToken 0–2: bring the end of a token nearer, for its owner and its renewers (KIP-48)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kbroker.errors import error_code
from kbroker.pending import Pending, mapped
from kbroker.protocol.errors import ErrorCode
from kbroker.protocol.messages.expire_delegation_token import (
    ExpireDelegationTokenRequest,
    ExpireDelegationTokenResponse,
)

if TYPE_CHECKING:
    from kbroker.broker import Broker
    from kbroker.requests.context import RequestContext


def handle(
    broker: Broker, request: ExpireDelegationTokenRequest, context: RequestContext
) -> ExpireDelegationTokenResponse | Pending[ExpireDelegationTokenResponse]:
    tokens = broker.resources(context).own_tokens(context.peer)
    expiring = tokens.expire(request.hmac, context.principal, request.expiry_time_period_ms, context.now_ms)
    return mapped(expiring, lambda time_ms: ExpireDelegationTokenResponse(expiry_timestamp_ms=time_ms))


def refuse(
    request: ExpireDelegationTokenRequest, context: RequestContext, error: BaseException
) -> ExpireDelegationTokenResponse:
    code = error_code(error) or ErrorCode.UNKNOWN_SERVER_ERROR
    allowed = code is not ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
    return ExpireDelegationTokenResponse(code, expiry_timestamp_ms=0 if allowed else -1)
