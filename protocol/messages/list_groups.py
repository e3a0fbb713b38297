"""ListGroups, API key 16."""

from __future__ import annotations

from kbroker.protocol.message import field, message, struct
from kbroker.protocol.types import INT16, INT32, STRING, Array


@message(api_key=16, kind="request", versions=(0, 5), flexible=3)
class ListGroupsRequest:
    states_filter: list[str] = field(Array(STRING), since=4)
    types_filter: list[str] = field(Array(STRING), since=5)


@struct
class ListedGroup:
    group_id: str = field(STRING)
    protocol_type: str = field(STRING)
    group_state: str = field(STRING, since=4, ignorable=True)
    group_type: str = field(STRING, since=5, ignorable=True)


@message(api_key=16, kind="response", versions=(0, 5), flexible=3)
class ListGroupsResponse:
    throttle_time_ms: int = field(INT32, since=1, ignorable=True)
    error_code: int = field(INT16)
    groups: list[ListedGroup] = field(Array(ListedGroup))
