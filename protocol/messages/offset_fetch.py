"""OffsetFetch, API key 9."""

from __future__ import annotations

from kbroker.protocol import topic_ids
from kbroker.protocol.message import field, message, struct
from kbroker.protocol.types import BOOL, INT16, INT32, INT64, STRING, UUID, Array


@struct
class OffsetFetchRequestTopic:
    name: str = field(STRING)
    partition_indexes: list[int] = field(Array(INT32))


@struct
class OffsetFetchRequestTopics:
    name: str = field(STRING, until=topic_ids.OFFSET_FETCH_SINCE - 1, ignorable=True)
    topic_id: bytes = field(UUID, since=topic_ids.OFFSET_FETCH_SINCE, ignorable=True)
    partition_indexes: list[int] = field(Array(INT32))


@struct
class OffsetFetchRequestGroup:
    group_id: str = field(STRING)
    member_id: str | None = field(STRING, since=9, nullable_since=9, default=None, ignorable=True)
    member_epoch: int = field(INT32, since=9, default=-1, ignorable=True)
    topics: list[OffsetFetchRequestTopics] | None = field(Array(OffsetFetchRequestTopics), nullable_since=0)


@message(api_key=9, kind="request", versions=(0, 10), flexible=6)
class OffsetFetchRequest:
    group_id: str = field(STRING, until=7)
    topics: list[OffsetFetchRequestTopic] | None = field(
        Array(OffsetFetchRequestTopic), until=7, nullable_since=2
    )
    groups: list[OffsetFetchRequestGroup] = field(Array(OffsetFetchRequestGroup), since=8)
    require_stable: bool = field(BOOL, since=7)


@struct
class OffsetFetchResponsePartition:
    partition_index: int = field(INT32)
    committed_offset: int = field(INT64)
    committed_leader_epoch: int = field(INT32, since=5, default=-1, ignorable=True)
    metadata: str | None = field(STRING, nullable_since=0)
    error_code: int = field(INT16)


@struct
class OffsetFetchResponseTopic:
    name: str = field(STRING)
    partitions: list[OffsetFetchResponsePartition] = field(Array(OffsetFetchResponsePartition))


@struct
class OffsetFetchResponsePartitions:
    partition_index: int = field(INT32)
    committed_offset: int = field(INT64)
    committed_leader_epoch: int = field(INT32, default=-1, ignorable=True)
    metadata: str | None = field(STRING, nullable_since=0)
    error_code: int = field(INT16)


@struct
class OffsetFetchResponseTopics:
    name: str = field(STRING, until=topic_ids.OFFSET_FETCH_SINCE - 1, ignorable=True)
    topic_id: bytes = field(UUID, since=topic_ids.OFFSET_FETCH_SINCE, ignorable=True)
    partitions: list[OffsetFetchResponsePartitions] = field(Array(OffsetFetchResponsePartitions))


@struct
class OffsetFetchResponseGroup:
    group_id: str = field(STRING)
    topics: list[OffsetFetchResponseTopics] = field(Array(OffsetFetchResponseTopics))
    error_code: int = field(INT16)


@message(api_key=9, kind="response", versions=(0, 10), flexible=6)
class OffsetFetchResponse:
    throttle_time_ms: int = field(INT32, since=3, ignorable=True)
    topics: list[OffsetFetchResponseTopic] = field(Array(OffsetFetchResponseTopic), until=7)
    error_code: int = field(INT16, since=2, until=7, ignorable=True)
    groups: list[OffsetFetchResponseGroup] = field(Array(OffsetFetchResponseGroup), since=8)
