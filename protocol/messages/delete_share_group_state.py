"""DeleteShareGroupState, API key 86."""

from __future__ import annotations

from kbroker.protocol.message import field, message, struct
from kbroker.protocol.types import INT16, INT32, STRING, UUID, Array


@struct
class PartitionData:
    partition: int = field(INT32)


@struct
class DeleteStateData:
    topic_id: bytes = field(UUID)
    partitions: list[PartitionData] = field(Array(PartitionData))


@message(api_key=86, kind="request", versions=(0, 0), flexible=0)
class DeleteShareGroupStateRequest:
    group_id: str = field(STRING)
    topics: list[DeleteStateData] = field(Array(DeleteStateData))


@struct
class PartitionResult:
    partition: int = field(INT32)
    error_code: int = field(INT16)
    error_message: str | None = field(STRING, nullable_since=0, default=None)


@struct
class DeleteStateResult:
    topic_id: bytes = field(UUID)
    partitions: list[PartitionResult] = field(Array(PartitionResult))


@message(api_key=86, kind="response", versions=(0, 0), flexible=0)
class DeleteShareGroupStateResponse:
    results: list[DeleteStateResult] = field(Array(DeleteStateResult))
