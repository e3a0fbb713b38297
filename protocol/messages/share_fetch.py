"""ShareFetch, API key 78."""

from __future__ import annotations

from kbroker.protocol.message import field, message, struct
from kbroker.protocol.types import BOOL, INT8, INT16, INT32, INT64, RECORDS, STRING, UUID, Array, Records


@struct
class AcknowledgementBatch:
    first_offset: int = field(INT64)
    last_offset: int = field(INT64)
    acknowledge_types: list[int] = field(Array(INT8))


@struct
class FetchPartition:
    partition_index: int = field(INT32)
    acknowledgement_batches: list[AcknowledgementBatch] = field(Array(AcknowledgementBatch))


@struct
class FetchTopic:
    topic_id: bytes = field(UUID)
    partitions: list[FetchPartition] = field(Array(FetchPartition))


@struct
class ForgottenTopic:
    topic_id: bytes = field(UUID)
    partitions: list[int] = field(Array(INT32))


@message(api_key=78, kind="request", versions=(1, 2), flexible=0)
class ShareFetchRequest:
    group_id: str | None = field(STRING, nullable_since=0, default=None)
    member_id: str | None = field(STRING, nullable_since=0)
    share_session_epoch: int = field(INT32)
    max_wait_ms: int = field(INT32)
    min_bytes: int = field(INT32)
    max_bytes: int = field(INT32, default=2147483647)
    max_records: int = field(INT32)
    batch_size: int = field(INT32)
    share_acquire_mode: int = field(INT8, since=2, ignorable=True)
    is_renew_ack: bool = field(BOOL, since=2)
    topics: list[FetchTopic] = field(Array(FetchTopic))
    forgotten_topics_data: list[ForgottenTopic] = field(Array(ForgottenTopic))


@struct
class LeaderIdAndEpoch:
    leader_id: int = field(INT32)
    leader_epoch: int = field(INT32)


@struct
class AcquiredRecords:
    first_offset: int = field(INT64)
    last_offset: int = field(INT64)
    delivery_count: int = field(INT16)


@struct
class PartitionData:
    partition_index: int = field(INT32)
    error_code: int = field(INT16)
    error_message: str | None = field(STRING, nullable_since=0, default=None)
    acknowledge_error_code: int = field(INT16)
    acknowledge_error_message: str | None = field(STRING, nullable_since=0, default=None)
    current_leader: LeaderIdAndEpoch = field(LeaderIdAndEpoch)
    records: Records = field(RECORDS, default=b"")
    acquired_records: list[AcquiredRecords] = field(Array(AcquiredRecords))


@struct
class ShareFetchableTopicResponse:
    topic_id: bytes = field(UUID)
    partitions: list[PartitionData] = field(Array(PartitionData))


@struct
class NodeEndpoint:
    node_id: int = field(INT32)
    host: str = field(STRING)
    port: int = field(INT32)
    rack: str | None = field(STRING, nullable_since=0, default=None)


@message(api_key=78, kind="response", versions=(1, 2), flexible=0)
class ShareFetchResponse:
    throttle_time_ms: int = field(INT32)
    error_code: int = field(INT16)
    error_message: str | None = field(STRING, nullable_since=0, default=None)
    acquisition_lock_timeout_ms: int = field(INT32)
    responses: list[ShareFetchableTopicResponse] = field(Array(ShareFetchableTopicResponse))
    node_endpoints: list[NodeEndpoint] = field(Array(NodeEndpoint))
