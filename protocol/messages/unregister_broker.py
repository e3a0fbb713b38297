"""UnregisterBroker, API key 64."""

from __future__ import annotations

from kbroker.protocol.message import field, message
from kbroker.protocol.types import INT16, INT32, STRING


@message(api_key=64, kind="request", versions=(0, 0), flexible=0)
class UnregisterBrokerRequest:
    broker_id: int = field(INT32)


@message(api_key=64, kind="response", versions=(0, 0), flexible=0)
class UnregisterBrokerResponse:
    throttle_time_ms: int = field(INT32)
    error_code: int = field(INT16)
    error_message: str | None = field(STRING, nullable_since=0)
