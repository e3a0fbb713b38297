"""ShareAcknowledge, API key 79."""

from __future__ import annotations

from kbroker.protocol.message import field, message, struct
from kbroker.protocol.types import BOOL, INT8, INT16, INT32, INT64, STRING, UUID, Array


@struct
class AcknowledgementBatch:
    first_offset: int = field(INT64)
    last_offset: int = field(INT64)
    acknowledge_types: list[int] = field(Array(INT8))


@struct
class AcknowledgePartition:
    partition_index: int = field(INT32)
    acknowledgement_batches: list[AcknowledgementBatch] = field(Array(AcknowledgementBatch))


@struct
class AcknowledgeTopic:
    topic_id: bytes = field(UUID)
    partitions: list[AcknowledgePartition] = field(Array(AcknowledgePartition))


@message(api_key=79, kind="request", versions=(1, 2), flexible=0)
class ShareAcknowledgeRequest:
    group_id: str | None = field(STRING, nullable_since=0, default=None)
    member_id: str | None = field(STRING, nullable_since=0)
    share_session_epoch: int = field(INT32)
    is_renew_ack: bool = field(BOOL, since=2)
    topics: list[AcknowledgeTopic] = field(Array(AcknowledgeTopic))


@struct
class LeaderIdAndEpoch:
    leader_id: int = field(INT32)
    leader_epoch: int = field(INT32)


@struct
class PartitionData:
    partition_index: int = field(INT32)
    error_code: int = field(INT16)
    error_message: str | None = field(STRING, nullable_since=0, default=None)
    current_leader: LeaderIdAndEpoch = field(LeaderIdAndEpoch)


@struct
class ShareAcknowledgeTopicResponse:
    topic_id: bytes = field(UUID)
    partitions: list[PartitionData] = field(Array(PartitionData))


@struct
class NodeEndpoint:
    node_id: int = field(INT32)
    host: str = field(STRING)
    port: int = field(INT32)
    rack: str | None = field(STRING, nullable_since=0, default=None)


@message(api_key=79, kind="response", versions=(1, 2), flexible=0)
class ShareAcknowledgeResponse:
    throttle_time_ms: int = field(INT32)
    error_code: int = field(INT16)
    error_message: str | None = field(STRING, nullable_since=0, default=None)
    acquisition_lock_timeout_ms: int = field(INT32, since=2, ignorable=True)
    responses: list[ShareAcknowledgeTopicResponse] = field(Array(ShareAcknowledgeTopicResponse))
    node_endpoints: list[NodeEndpoint] = field(Array(NodeEndpoint))
