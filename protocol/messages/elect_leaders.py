"""ElectLeaders, API key 43."""

from __future__ import annotations

from kbroker.protocol.message import field, message, struct
from kbroker.protocol.types import INT8, INT16, INT32, STRING, Array


@struct
class TopicPartitions:
    topic: str = field(STRING)
    partitions: list[int] = field(Array(INT32))


@message(api_key=43, kind="request", versions=(0, 2), flexible=2)
class ElectLeadersRequest:
    election_type: int = field(INT8, since=1)
    topic_partitions: list[TopicPartitions] | None = field(Array(TopicPartitions), nullable_since=0)
    timeout_ms: int = field(INT32, default=60000)


@struct
class PartitionResult:
    partition_id: int = field(INT32)
    error_code: int = field(INT16)
    error_message: str | None = field(STRING, nullable_since=0)


@struct
class ReplicaElectionResult:
    topic: str = field(STRING)
    partition_result: list[PartitionResult] = field(Array(PartitionResult))


@message(api_key=43, kind="response", versions=(0, 2), flexible=2)
class ElectLeadersResponse:
    throttle_time_ms: int = field(INT32)
    error_code: int = field(INT16, since=1)
    replica_election_results: list[ReplicaElectionResult] = field(Array(ReplicaElectionResult))
