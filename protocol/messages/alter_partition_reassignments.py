"""AlterPartitionReassignments, API key 45."""

from __future__ import annotations

from kbroker.protocol.message import field, message, struct
from kbroker.protocol.types import BOOL, INT16, INT32, STRING, Array


@struct
class ReassignablePartition:
    partition_index: int = field(INT32)
    replicas: list[int] | None = field(Array(INT32), nullable_since=0, default=None)


@struct
class ReassignableTopic:
    name: str = field(STRING)
    partitions: list[ReassignablePartition] = field(Array(ReassignablePartition))


@message(api_key=45, kind="request", versions=(0, 1), flexible=0)
class AlterPartitionReassignmentsRequest:
    timeout_ms: int = field(INT32, default=60000)
    allow_replication_factor_change: bool = field(BOOL, since=1, default=True)
    topics: list[ReassignableTopic] = field(Array(ReassignableTopic))


@struct
class ReassignablePartitionResponse:
    partition_index: int = field(INT32)
    error_code: int = field(INT16)
    error_message: str | None = field(STRING, nullable_since=0)


@struct
class ReassignableTopicResponse:
    name: str = field(STRING)
    partitions: list[ReassignablePartitionResponse] = field(Array(ReassignablePartitionResponse))


@message(api_key=45, kind="response", versions=(0, 1), flexible=0)
class AlterPartitionReassignmentsResponse:
    throttle_time_ms: int = field(INT32)
    allow_replication_factor_change: bool = field(BOOL, since=1, default=True, ignorable=True)
    error_code: int = field(INT16)
    error_message: str | None = field(STRING, nullable_since=0)
    responses: list[ReassignableTopicResponse] = field(Array(ReassignableTopicResponse))
