"""SaslHandshake 0–1 where none is expected: no logins on this listener, or the session is open (KIP-43).

The handshake that begins a login is part of the session (requests/sasl_session.py).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kbroker.protocol.errors import ErrorCode
from kbroker.protocol.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse

if TYPE_CHECKING:
    from kbroker.broker import Broker
    from kbroker.requests.context import RequestContext


def handle(broker: Broker, request: SaslHandshakeRequest, context: RequestContext) -> SaslHandshakeResponse:
    return SaslHandshakeResponse(ErrorCode.ILLEGAL_SASL_STATE)
