"""SaslAuthenticate 0–2 where none is expected: no logins on this listener, or the session is open (KIP-152).

The messages of a login are part of the session (requests/sasl_session.py).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kbroker.protocol.errors import ErrorCode
from kbroker.protocol.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse

if TYPE_CHECKING:
    from kbroker.broker import Broker
    from kbroker.requests.context import RequestContext

_TOLD = "SaslAuthenticate request received after successful authentication"


def handle(
    broker: Broker, request: SaslAuthenticateRequest, context: RequestContext
) -> SaslAuthenticateResponse:
    return SaslAuthenticateResponse(ErrorCode.ILLEGAL_SASL_STATE, _TOLD)
