"""SyncGroup, API key 14."""

from __future__ import annotations

from kbroker.protocol.message import field, message, struct
from kbroker.protocol.types import BYTES, INT16, INT32, STRING, Array


@struct
class SyncGroupRequestAssignment:
    member_id: str = field(STRING)
    assignment: bytes = field(BYTES)


@message(api_key=14, kind="request", versions=(0, 5), flexible=4)
class SyncGroupRequest:
    group_id: str = field(STRING)
    generation_id: int = field(INT32)
    member_id: str = field(STRING)
    group_instance_id: str | None = field(STRING, since=3, nullable_since=3, default=None)
    protocol_type: str | None = field(STRING, since=5, nullable_since=5, default=None, ignorable=True)
    protocol_name: str | None = field(STRING, since=5, nullable_since=5, default=None, ignorable=True)
    assignments: list[SyncGroupRequestAssignment] = field(Array(SyncGroupRequestAssignment))


@message(api_key=14, kind="response", versions=(0, 5), flexible=4)
class SyncGroupResponse:
    throttle_time_ms: int = field(INT32, since=1, ignorable=True)
    error_code: int = field(INT16)
    protocol_type: str | None = field(STRING, since=5, nullable_since=5, default=None, ignorable=True)
    protocol_name: str | None = field(STRING, since=5, nullable_since=5, default=None, ignorable=True)
    assignment: bytes = field(BYTES)
