"""ReadShareGroupStateSummary, API key 87."""

from __future__ import annotations

from kbroker.protocol.message import field, message, struct
from kbroker.protocol.types import INT16, INT32, INT64, STRING, UUID, Array


@struct
class PartitionData:
    partition: int = field(INT32)
    leader_epoch: int = field(INT32)


@struct
class ReadStateSummaryData:
    topic_id: bytes = field(UUID)
    partitions: list[PartitionData] = field(Array(PartitionData))


@message(api_key=87, kind="request", versions=(0, 1), flexible=0)
class ReadShareGroupStateSummaryRequest:
    group_id: str = field(STRING)
    topics: list[ReadStateSummaryData] = field(Array(ReadStateSummaryData))


@struct
class PartitionResult:
    partition: int = field(INT32)
    error_code: int = field(INT16)
    error_message: str | None = field(STRING, nullable_since=0, default=None)
    state_epoch: int = field(INT32)
    leader_epoch: int = field(INT32)
    start_offset: int = field(INT64)
    delivery_complete_count: int = field(INT32, since=1, default=-1, ignorable=True)


@struct
class ReadStateSummaryResult:
    topic_id: bytes = field(UUID)
    partitions: list[PartitionResult] = field(Array(PartitionResult))


@message(api_key=87, kind="response", versions=(0, 1), flexible=0)
class ReadShareGroupStateSummaryResponse:
    results: list[ReadStateSummaryResult] = field(Array(ReadStateSummaryResult))
