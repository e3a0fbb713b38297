"""DeleteGroups, API key 42."""

from __future__ import annotations

from kbroker.protocol.message import field, message, struct
from kbroker.protocol.types import INT16, INT32, STRING, Array


@message(api_key=42, kind="request", versions=(0, 2), flexible=2)
class DeleteGroupsRequest:
    groups_names: list[str] = field(Array(STRING))


@struct
class DeletableGroupResult:
    group_id: str = field(STRING)
    error_code: int = field(INT16)


@message(api_key=42, kind="response", versions=(0, 2), flexible=2)
class DeleteGroupsResponse:
    throttle_time_ms: int = field(INT32)
    results: list[DeletableGroupResult] = field(Array(DeletableGroupResult))
