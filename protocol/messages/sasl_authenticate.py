"""SaslAuthenticate, API key 36."""

from __future__ import annotations

from kbroker.protocol.message import field, message
from kbroker.protocol.types import BYTES, INT16, INT64, STRING


@message(api_key=36, kind="request", versions=(0, 2), flexible=2)
class SaslAuthenticateRequest:
    auth_bytes: bytes = field(BYTES)


@message(api_key=36, kind="response", versions=(0, 2), flexible=2)
class SaslAuthenticateResponse:
    error_code: int = field(INT16)
    error_message: str | None = field(STRING, nullable_since=0)
    auth_bytes: bytes = field(BYTES)
    session_lifetime_ms: int = field(INT64, since=1, ignorable=True)
