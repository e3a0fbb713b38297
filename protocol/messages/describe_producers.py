"""DescribeProducers, API key 61."""

from __future__ import annotations

from kbroker.protocol.message import field, message, struct
from kbroker.protocol.types import INT16, INT32, INT64, STRING, Array


@struct
class TopicRequest:
    name: str = field(STRING)
    partition_indexes: list[int] = field(Array(INT32))


@message(api_key=61, kind="request", versions=(0, 0), flexible=0)
class DescribeProducersRequest:
    topics: list[TopicRequest] = field(Array(TopicRequest))


@struct
class ProducerState:
    producer_id: int = field(INT64)
    producer_epoch: int = field(INT32)
    last_sequence: int = field(INT32, default=-1)
    last_timestamp: int = field(INT64, default=-1)
    coordinator_epoch: int = field(INT32)
    current_txn_start_offset: int = field(INT64, default=-1)


@struct
class PartitionResponse:
    partition_index: int = field(INT32)
    error_code: int = field(INT16)
    error_message: str | None = field(STRING, nullable_since=0, default=None)
    active_producers: list[ProducerState] = field(Array(ProducerState))


@struct
class TopicResponse:
    name: str = field(STRING)
    partitions: list[PartitionResponse] = field(Array(PartitionResponse))


@message(api_key=61, kind="response", versions=(0, 0), flexible=0)
class DescribeProducersResponse:
    throttle_time_ms: int = field(INT32)
    topics: list[TopicResponse] = field(Array(TopicResponse))
