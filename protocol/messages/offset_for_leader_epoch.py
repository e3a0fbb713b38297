"""OffsetForLeaderEpoch, API key 23."""

from __future__ import annotations

from kbroker.protocol.message import field, message, struct
from kbroker.protocol.types import INT16, INT32, INT64, STRING, Array


@struct
class OffsetForLeaderPartition:
    partition: int = field(INT32)
    current_leader_epoch: int = field(INT32, since=2, default=-1, ignorable=True)
    leader_epoch: int = field(INT32)


@struct
class OffsetForLeaderTopic:
    topic: str = field(STRING)
    partitions: list[OffsetForLeaderPartition] = field(Array(OffsetForLeaderPartition))


@message(api_key=23, kind="request", versions=(0, 4), flexible=4)
class OffsetForLeaderEpochRequest:
    replica_id: int = field(INT32, since=3, default=-2, ignorable=True)
    topics: list[OffsetForLeaderTopic] = field(Array(OffsetForLeaderTopic))


@struct
class EpochEndOffset:
    error_code: int = field(INT16)
    partition: int = field(INT32)
    leader_epoch: int = field(INT32, since=1, default=-1, ignorable=True)
    end_offset: int = field(INT64, default=-1)


@struct
class OffsetForLeaderTopicResult:
    topic: str = field(STRING)
    partitions: list[EpochEndOffset] = field(Array(EpochEndOffset))


@message(api_key=23, kind="response", versions=(0, 4), flexible=4)
class OffsetForLeaderEpochResponse:
    throttle_time_ms: int = field(INT32, since=2, ignorable=True)
    topics: list[OffsetForLeaderTopicResult] = field(Array(OffsetForLeaderTopicResult))
