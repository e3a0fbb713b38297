"""WriteShareGroupState, API key 85."""

from __future__ import annotations

from kbroker.protocol.message import field, message, struct
from kbroker.protocol.types import INT8, INT16, INT32, INT64, STRING, UUID, Array


@struct
class StateBatch:
    first_offset: int = field(INT64)
    last_offset: int = field(INT64)
    delivery_state: int = field(INT8)
    delivery_count: int = field(INT16)


@struct
class PartitionData:
    partition: int = field(INT32)
    state_epoch: int = field(INT32)
    leader_epoch: int = field(INT32)
    start_offset: int = field(INT64)
    delivery_complete_count: int = field(INT32, since=1, default=-1, ignorable=True)
    state_batches: list[StateBatch] = field(Array(StateBatch))


@struct
class WriteStateData:
    topic_id: bytes = field(UUID)
    partitions: list[PartitionData] = field(Array(PartitionData))


@message(api_key=85, kind="request", versions=(0, 1), flexible=0)
class WriteShareGroupStateRequest:
    group_id: str = field(STRING)
    topics: list[WriteStateData] = field(Array(WriteStateData))


@struct
class PartitionResult:
    partition: int = field(INT32)
    error_code: int = field(INT16)
    error_message: str | None = field(STRING, nullable_since=0, default=None)


@struct
class WriteStateResult:
    topic_id: bytes = field(UUID)
    partitions: list[PartitionResult] = field(Array(PartitionResult))


@message(api_key=85, kind="response", versions=(0, 1), flexible=0)
class WriteShareGroupStateResponse:
    results: list[WriteStateResult] = field(Array(WriteStateResult))
