"""Produce, API key 0."""

from __future__ import annotations

from kbroker.protocol import topic_ids
from kbroker.protocol.message import field, message, struct
from kbroker.protocol.types import INT16, INT32, INT64, RECORDS, STRING, UUID, Array


@struct
class PartitionProduceData:
    index: int = field(INT32)
    records: memoryview | None = field(RECORDS, nullable_since=0)


@struct
class TopicProduceData:
    name: str = field(STRING, until=topic_ids.PRODUCE_SINCE - 1, ignorable=True)
    topic_id: bytes = field(UUID, since=topic_ids.PRODUCE_SINCE, ignorable=True)
    partition_data: list[PartitionProduceData] = field(Array(PartitionProduceData))


@message(api_key=0, kind="request", versions=(0, 13), flexible=9)
class ProduceRequest:
    transactional_id: str | None = field(STRING, since=3, nullable_since=3, default=None)
    acks: int = field(INT16)
    timeout_ms: int = field(INT32)
    topic_data: list[TopicProduceData] = field(Array(TopicProduceData))


@struct
class BatchIndexAndErrorMessage:
    batch_index: int = field(INT32)
    batch_index_error_message: str | None = field(STRING, nullable_since=0, default=None)


@struct
class LeaderIdAndEpoch:
    leader_id: int = field(INT32, default=-1)
    leader_epoch: int = field(INT32, default=-1)


@struct
class PartitionProduceResponse:
    index: int = field(INT32)
    error_code: int = field(INT16)
    base_offset: int = field(INT64)
    log_append_time_ms: int = field(INT64, since=2, default=-1, ignorable=True)
    log_start_offset: int = field(INT64, since=5, default=-1, ignorable=True)
    record_errors: list[BatchIndexAndErrorMessage] = field(
        Array(BatchIndexAndErrorMessage), since=8, ignorable=True
    )
    error_message: str | None = field(STRING, since=8, nullable_since=8, default=None, ignorable=True)
    current_leader: LeaderIdAndEpoch = field(LeaderIdAndEpoch, since=10, tag=0)


@struct
class TopicProduceResponse:
    name: str = field(STRING, until=topic_ids.PRODUCE_SINCE - 1, ignorable=True)
    topic_id: bytes = field(UUID, since=topic_ids.PRODUCE_SINCE, ignorable=True)
    partition_responses: list[PartitionProduceResponse] = field(Array(PartitionProduceResponse))


@struct
class NodeEndpoint:
    node_id: int = field(INT32)
    host: str = field(STRING)
    port: int = field(INT32)
    rack: str | None = field(STRING, nullable_since=0, default=None)


@message(api_key=0, kind="response", versions=(0, 13), flexible=9)
class ProduceResponse:
    responses: list[TopicProduceResponse] = field(Array(TopicProduceResponse))
    throttle_time_ms: int = field(INT32, since=1, ignorable=True)
    node_endpoints: list[NodeEndpoint] = field(Array(NodeEndpoint), since=10, tag=0)
