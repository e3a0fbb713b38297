"""FindCoordinator, API key 10."""

from __future__ import annotations

from kbroker.protocol.message import field, message, struct
from kbroker.protocol.types import INT8, INT16, INT32, STRING, Array


@message(api_key=10, kind="request", versions=(0, 6), flexible=3)
class FindCoordinatorRequest:
    key: str = field(STRING, until=3)
    key_type: int = field(INT8, since=1)
    coordinator_keys: list[str] = field(Array(STRING), since=4)


@struct
class Coordinator:
    key: str = field(STRING)
    node_id: int = field(INT32)
    host: str = field(STRING)
    port: int = field(INT32)
    error_code: int = field(INT16)
    error_message: str | None = field(STRING, nullable_since=0, ignorable=True)


@message(api_key=10, kind="response", versions=(0, 6), flexible=3)
class FindCoordinatorResponse:
    throttle_time_ms: int = field(INT32, since=1, ignorable=True)
    error_code: int = field(INT16, until=3)
    error_message: str | None = field(STRING, since=1, until=3, nullable_since=1, ignorable=True)
    node_id: int = field(INT32, until=3)
    host: str = field(STRING, until=3)
    port: int = field(INT32, until=3)
    coordinators: list[Coordinator] = field(Array(Coordinator), since=4)
