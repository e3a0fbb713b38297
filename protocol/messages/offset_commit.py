"""OffsetCommit, API key 8."""

from __future__ import annotations

from kbroker.protocol import topic_ids
from kbroker.protocol.message import field, message, struct
from kbroker.protocol.types import INT16, INT32, INT64, STRING, UUID, Array


@struct
class OffsetCommitRequestPartition:
    partition_index: int = field(INT32)
    committed_offset: int = field(INT64)
    committed_leader_epoch: int = field(INT32, since=6, default=-1, ignorable=True)
    commit_timestamp: int = field(INT64, since=1, until=1, default=-1)
    committed_metadata: str | None = field(STRING, nullable_since=0)


@struct
class OffsetCommitRequestTopic:
    name: str = field(STRING, until=topic_ids.OFFSET_COMMIT_SINCE - 1, ignorable=True)
    topic_id: bytes = field(UUID, since=topic_ids.OFFSET_COMMIT_SINCE, ignorable=True)
    partitions: list[OffsetCommitRequestPartition] = field(Array(OffsetCommitRequestPartition))


@message(api_key=8, kind="request", versions=(0, 10), flexible=8)
class OffsetCommitRequest:
    group_id: str = field(STRING)
    generation_id_or_member_epoch: int = field(INT32, since=1, default=-1, ignorable=True)
    member_id: str = field(STRING, since=1, ignorable=True)
    group_instance_id: str | None = field(STRING, since=7, nullable_since=7, default=None)
    retention_time_ms: int = field(INT64, since=2, until=4, default=-1, ignorable=True)
    topics: list[OffsetCommitRequestTopic] = field(Array(OffsetCommitRequestTopic))


@struct
class OffsetCommitResponsePartition:
    partition_index: int = field(INT32)
    error_code: int = field(INT16)


@struct
class OffsetCommitResponseTopic:
    name: str = field(STRING, until=topic_ids.OFFSET_COMMIT_SINCE - 1, ignorable=True)
    topic_id: bytes = field(UUID, since=topic_ids.OFFSET_COMMIT_SINCE, ignorable=True)
    partitions: list[OffsetCommitResponsePartition] = field(Array(OffsetCommitResponsePartition))


@message(api_key=8, kind="response", versions=(0, 10), flexible=8)
class OffsetCommitResponse:
    throttle_time_ms: int = field(INT32, since=3, ignorable=True)
    topics: list[OffsetCommitResponseTopic] = field(Array(OffsetCommitResponseTopic))
