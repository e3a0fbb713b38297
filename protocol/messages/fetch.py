"""Fetch, API key 1."""

from __future__ import annotations

from kbroker.protocol import topic_ids
from kbroker.protocol.message import field, message, struct
from kbroker.protocol.types import INT8, INT16, INT32, INT64, RECORDS, STRING, UUID, Array, Records


@struct
class ReplicaState:
    replica_id: int = field(INT32, default=-1)
    replica_epoch: int = field(INT64, default=-1)


@struct
class FetchPartition:
    partition: int = field(INT32)
    current_leader_epoch: int = field(INT32, since=9, default=-1, ignorable=True)
    fetch_offset: int = field(INT64)
    last_fetched_epoch: int = field(INT32, since=12, default=-1)
    log_start_offset: int = field(INT64, since=5, default=-1, ignorable=True)
    partition_max_bytes: int = field(INT32)
    replica_directory_id: bytes = field(UUID, since=17, tag=0, ignorable=True)
    high_watermark: int = field(INT64, since=18, default=9223372036854775807, tag=1, ignorable=True)


@struct
class FetchTopic:
    topic: str = field(STRING, until=topic_ids.FETCH_SINCE - 1, ignorable=True)
    topic_id: bytes = field(UUID, since=topic_ids.FETCH_SINCE, ignorable=True)
    partitions: list[FetchPartition] = field(Array(FetchPartition))


@struct
class ForgottenTopic:
    topic: str = field(STRING, until=topic_ids.FETCH_SINCE - 1, ignorable=True)
    topic_id: bytes = field(UUID, since=topic_ids.FETCH_SINCE, ignorable=True)
    partitions: list[int] = field(Array(INT32))


@message(api_key=1, kind="request", versions=(0, 18), flexible=12)
class FetchRequest:
    cluster_id: str | None = field(STRING, since=12, nullable_since=12, default=None, tag=0, ignorable=True)
    replica_id: int = field(INT32, until=14, default=-1)
    replica_state: ReplicaState = field(ReplicaState, since=15, tag=1)
    max_wait_ms: int = field(INT32)
    min_bytes: int = field(INT32)
    max_bytes: int = field(INT32, since=3, default=2147483647, ignorable=True)
    isolation_level: int = field(INT8, since=4, ignorable=True)
    session_id: int = field(INT32, since=7, ignorable=True)
    session_epoch: int = field(INT32, since=7, default=-1, ignorable=True)
    topics: list[FetchTopic] = field(Array(FetchTopic))
    forgotten_topics_data: list[ForgottenTopic] = field(Array(ForgottenTopic), since=7)
    rack_id: str = field(STRING, since=11, ignorable=True)


@struct
class EpochEndOffset:
    epoch: int = field(INT32, default=-1)
    end_offset: int = field(INT64, default=-1)


@struct
class LeaderIdAndEpoch:
    leader_id: int = field(INT32, default=-1)
    leader_epoch: int = field(INT32, default=-1)


@struct
class SnapshotId:
    end_offset: int = field(INT64, default=-1)
    epoch: int = field(INT32, default=-1)


@struct
class AbortedTransaction:
    producer_id: int = field(INT64)
    first_offset: int = field(INT64)


@struct
class PartitionData:
    partition_index: int = field(INT32)
    error_code: int = field(INT16)
    high_watermark: int = field(INT64)
    last_stable_offset: int = field(INT64, since=4, default=-1, ignorable=True)
    log_start_offset: int = field(INT64, since=5, default=-1, ignorable=True)
    diverging_epoch: EpochEndOffset = field(EpochEndOffset, since=12, tag=0)
    current_leader: LeaderIdAndEpoch = field(LeaderIdAndEpoch, since=12, tag=1)
    snapshot_id: SnapshotId = field(SnapshotId, since=12, tag=2)
    aborted_transactions: list[AbortedTransaction] | None = field(
        Array(AbortedTransaction), since=4, nullable_since=4, ignorable=True
    )
    preferred_read_replica: int = field(INT32, since=11, default=-1)
    records: Records | None = field(RECORDS, nullable_since=0)


@struct
class FetchableTopicResponse:
    topic: str = field(STRING, until=topic_ids.FETCH_SINCE - 1, ignorable=True)
    topic_id: bytes = field(UUID, since=topic_ids.FETCH_SINCE, ignorable=True)
    partitions: list[PartitionData] = field(Array(PartitionData))


@struct
class NodeEndpoint:
    node_id: int = field(INT32)
    host: str = field(STRING)
    port: int = field(INT32)
    rack: str | None = field(STRING, nullable_since=0, default=None)


@message(api_key=1, kind="response", versions=(0, 18), flexible=12)
class FetchResponse:
    throttle_time_ms: int = field(INT32, since=1, ignorable=True)
    error_code: int = field(INT16, since=7, ignorable=True)
    session_id: int = field(INT32, since=7)
    responses: list[FetchableTopicResponse] = field(Array(FetchableTopicResponse))
    node_endpoints: list[NodeEndpoint] = field(Array(NodeEndpoint), since=16, tag=0)
