"""DeleteRecords, API key 21."""

from __future__ import annotations

from kbroker.protocol.message import field, message, struct
from kbroker.protocol.types import INT16, INT32, INT64, STRING, Array


@struct
class DeleteRecordsPartition:
    partition_index: int = field(INT32)
    offset: int = field(INT64)


@struct
class DeleteRecordsTopic:
    name: str = field(STRING)
    partitions: list[DeleteRecordsPartition] = field(Array(DeleteRecordsPartition))


@message(api_key=21, kind="request", versions=(0, 2), flexible=2)
class DeleteRecordsRequest:
    topics: list[DeleteRecordsTopic] = field(Array(DeleteRecordsTopic))
    timeout_ms: int = field(INT32)


@struct
class DeleteRecordsPartitionResult:
    partition_index: int = field(INT32)
    low_watermark: int = field(INT64)
    error_code: int = field(INT16)


@struct
class DeleteRecordsTopicResult:
    name: str = field(STRING)
    partitions: list[DeleteRecordsPartitionResult] = field(Array(DeleteRecordsPartitionResult))


@message(api_key=21, kind="response", versions=(0, 2), flexible=2)
class DeleteRecordsResponse:
    throttle_time_ms: int = field(INT32)
    topics: list[DeleteRecordsTopicResult] = field(Array(DeleteRecordsTopicResult))
