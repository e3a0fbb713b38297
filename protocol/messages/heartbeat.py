"""Heartbeat, API key 12."""

from __future__ import annotations

from kbroker.protocol.message import field, message
from kbroker.protocol.types import INT16, INT32, STRING


@message(api_key=12, kind="request", versions=(0, 4), flexible=4)
class HeartbeatRequest:
    group_id: str = field(STRING)
    generation_id: int = field(INT32)
    member_id: str = field(STRING)
    group_instance_id: str | None = field(STRING, since=3, nullable_since=3, default=None)


@message(api_key=12, kind="response", versions=(0, 4), flexible=4)
class HeartbeatResponse:
    throttle_time_ms: int = field(INT32, since=1, ignorable=True)
    error_code: int = field(INT16)
