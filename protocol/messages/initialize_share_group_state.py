"""InitializeShareGroupState, API key 83."""

from __future__ import annotations

from kbroker.protocol.message import field, message, struct
from kbroker.protocol.types import INT16, INT32, INT64, STRING, UUID, Array


@struct
class PartitionData:
    partition: int = field(INT32)
    state_epoch: int = field(INT32)
    start_offset: int = field(INT64)


@struct
class InitializeStateData:
    topic_id: bytes = field(UUID)
    partitions: list[PartitionData] = field(Array(PartitionData))


@message(api_key=83, kind="request", versions=(0, 0), flexible=0)
class InitializeShareGroupStateRequest:
    group_id: str = field(STRING)
    topics: list[InitializeStateData] = field(Array(InitializeStateData))


@struct
class PartitionResult:
    partition: int = field(INT32)
    error_code: int = field(INT16)
    error_message: str | None = field(STRING, nullable_since=0, default=None)


@struct
class InitializeStateResult:
    topic_id: bytes = field(UUID)
    partitions: list[PartitionResult] = field(Array(PartitionResult))


@message(api_key=83, kind="response", versions=(0, 0), flexible=0)
class InitializeShareGroupStateResponse:
    results: list[InitializeStateResult] = field(Array(InitializeStateResult))
