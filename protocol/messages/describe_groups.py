"""DescribeGroups, API key 15."""

from __future__ import annotations

from kbroker.protocol.message import field, message, struct
from kbroker.protocol.types import BOOL, BYTES, INT16, INT32, STRING, Array


@message(api_key=15, kind="request", versions=(0, 6), flexible=5)
class DescribeGroupsRequest:
    groups: list[str] = field(Array(STRING))
    include_authorized_operations: bool = field(BOOL, since=3)


@struct
class DescribedGroupMember:
    member_id: str = field(STRING)
    group_instance_id: str | None = field(STRING, since=4, nullable_since=4, default=None, ignorable=True)
    client_id: str = field(STRING)
    client_host: str = field(STRING)
    member_metadata: bytes = field(BYTES)
    member_assignment: bytes = field(BYTES)


@struct
class DescribedGroup:
    error_code: int = field(INT16)
    error_message: str | None = field(STRING, since=6, nullable_since=6, default=None)
    group_id: str = field(STRING)
    group_state: str = field(STRING)
    protocol_type: str = field(STRING)
    protocol_data: str = field(STRING)
    members: list[DescribedGroupMember] = field(Array(DescribedGroupMember))
    authorized_operations: int = field(INT32, since=3, default=-2147483648)


@message(api_key=15, kind="response", versions=(0, 6), flexible=5)
class DescribeGroupsResponse:
    throttle_time_ms: int = field(INT32, since=1, ignorable=True)
    groups: list[DescribedGroup] = field(Array(DescribedGroup))
