"""ReadShareGroupState, API key 84."""

from __future__ import annotations

from kbroker.protocol.message import field, message, struct
from kbroker.protocol.types import INT8, INT16, INT32, INT64, STRING, UUID, Array


@struct
class PartitionData:
    partition: int = field(INT32)
    leader_epoch: int = field(INT32)


@struct
class ReadStateData:
    topic_id: bytes = field(UUID)
    partitions: list[PartitionData] = field(Array(PartitionData))


@message(api_key=84, kind="request", versions=(0, 0), flexible=0)
class ReadShareGroupStateRequest:
    group_id: str = field(STRING)
    topics: list[ReadStateData] = field(Array(ReadStateData))


@struct
class StateBatch:
    first_offset: int = field(INT64)
    last_offset: int = field(INT64)
    delivery_state: int = field(INT8)
    delivery_count: int = field(INT16)


@struct
class PartitionResult:
    partition: int = field(INT32)
    error_code: int = field(INT16)
    error_message: str | None = field(STRING, nullable_since=0, default=None)
    state_epoch: int = field(INT32)
    start_offset: int = field(INT64)
    state_batches: list[StateBatch] = field(Array(StateBatch))


@struct
class ReadStateResult:
    topic_id: bytes = field(UUID)
    partitions: list[PartitionResult] = field(Array(PartitionResult))


@message(api_key=84, kind="response", versions=(0, 0), flexible=0)
class ReadShareGroupStateResponse:
    results: list[ReadStateResult] = field(Array(ReadStateResult))
