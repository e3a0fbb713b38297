"""JoinGroup, API key 11."""

from __future__ import annotations

from kbroker.protocol.message import field, message, struct
from kbroker.protocol.types import BOOL, BYTES, INT16, INT32, STRING, Array


@struct
class JoinGroupRequestProtocol:
    name: str = field(STRING)
    metadata: bytes = field(BYTES)


@message(api_key=11, kind="request", versions=(0, 9), flexible=6)
class JoinGroupRequest:
    group_id: str = field(STRING)
    session_timeout_ms: int = field(INT32)
    rebalance_timeout_ms: int = field(INT32, since=1, default=-1, ignorable=True)
    member_id: str = field(STRING)
    group_instance_id: str | None = field(STRING, since=5, nullable_since=5, default=None)
    protocol_type: str = field(STRING)
    protocols: list[JoinGroupRequestProtocol] = field(Array(JoinGroupRequestProtocol))
    reason: str | None = field(STRING, since=8, nullable_since=8, default=None, ignorable=True)


@struct
class JoinGroupResponseMember:
    member_id: str = field(STRING)
    group_instance_id: str | None = field(STRING, since=5, nullable_since=5, default=None, ignorable=True)
    metadata: bytes = field(BYTES)


@message(api_key=11, kind="response", versions=(0, 9), flexible=6)
class JoinGroupResponse:
    throttle_time_ms: int = field(INT32, since=2, ignorable=True)
    error_code: int = field(INT16)
    generation_id: int = field(INT32, default=-1)
    protocol_type: str | None = field(STRING, since=7, nullable_since=7, default=None, ignorable=True)
    protocol_name: str | None = field(STRING, nullable_since=7)
    leader: str = field(STRING)
    skip_assignment: bool = field(BOOL, since=9)
    member_id: str = field(STRING)
    members: list[JoinGroupResponseMember] = field(Array(JoinGroupResponseMember))
