"""SaslHandshake, API key 17."""

from __future__ import annotations

from kbroker.protocol.message import field, message
from kbroker.protocol.types import INT16, STRING, Array


@message(api_key=17, kind="request", versions=(0, 1))
class SaslHandshakeRequest:
    mechanism: str = field(STRING)


@message(api_key=17, kind="response", versions=(0, 1))
class SaslHandshakeResponse:
    error_code: int = field(INT16)
    mechanisms: list[str] = field(Array(STRING))
