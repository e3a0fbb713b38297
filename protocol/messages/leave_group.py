"""LeaveGroup, API key 13."""

from __future__ import annotations

from kbroker.protocol.message import field, message, struct
from kbroker.protocol.types import INT16, INT32, STRING, Array


@struct
class MemberIdentity:
    member_id: str = field(STRING)
    group_instance_id: str | None = field(STRING, nullable_since=0, default=None)
    reason: str | None = field(STRING, since=5, nullable_since=5, default=None, ignorable=True)


@message(api_key=13, kind="request", versions=(0, 5), flexible=4)
class LeaveGroupRequest:
    group_id: str = field(STRING)
    member_id: str = field(STRING, until=2)
    members: list[MemberIdentity] = field(Array(MemberIdentity), since=3)


@struct
class MemberResponse:
    member_id: str = field(STRING)
    group_instance_id: str | None = field(STRING, nullable_since=0)
    error_code: int = field(INT16)


@message(api_key=13, kind="response", versions=(0, 5), flexible=4)
class LeaveGroupResponse:
    throttle_time_ms: int = field(INT32, since=1, ignorable=True)
    error_code: int = field(INT16)
    members: list[MemberResponse] = field(Array(MemberResponse), since=3)
