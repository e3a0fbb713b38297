"""ListPartitionReassignments, API key 46."""

from __future__ import annotations

from kbroker.protocol.message import field, message, struct
from kbroker.protocol.types import INT16, INT32, STRING, Array


@struct
class ListPartitionReassignmentsTopics:
    name: str = field(STRING)
    partition_indexes: list[int] = field(Array(INT32))


@message(api_key=46, kind="request", versions=(0, 0), flexible=0)
class ListPartitionReassignmentsRequest:
    timeout_ms: int = field(INT32, default=60000)
    topics: list[ListPartitionReassignmentsTopics] | None = field(
        Array(ListPartitionReassignmentsTopics), nullable_since=0, default=None
    )


@struct
class OngoingPartitionReassignment:
    partition_index: int = field(INT32)
    replicas: list[int] = field(Array(INT32))
    adding_replicas: list[int] = field(Array(INT32))
    removing_replicas: list[int] = field(Array(INT32))


@struct
class OngoingTopicReassignment:
    name: str = field(STRING)
    partitions: list[OngoingPartitionReassignment] = field(Array(OngoingPartitionReassignment))


@message(api_key=46, kind="response", versions=(0, 0), flexible=0)
class ListPartitionReassignmentsResponse:
    throttle_time_ms: int = field(INT32)
    error_code: int = field(INT16)
    error_message: str | None = field(STRING, nullable_since=0)
    topics: list[OngoingTopicReassignment] = field(Array(OngoingTopicReassignment))
