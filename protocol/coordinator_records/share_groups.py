"""Record types 10 to 14: share groups (KIP-932). What their share partitions stand at is kept elsewhere."""

from __future__ import annotations

from kbroker.protocol.message import field, message, struct
from kbroker.protocol.types import INT8, INT32, INT64, STRING, UUID, Array


@message(api_key=10, kind="coordinator-key", versions=(0, 0))
class ShareGroupMemberMetadataKey:
    group_id: str = field(STRING)
    member_id: str = field(STRING)


@message(api_key=10, kind="coordinator-value", versions=(0, 0), flexible=0)
class ShareGroupMemberMetadataValue:
    rack_id: str | None = field(STRING, nullable_since=0)
    client_id: str = field(STRING)
    client_host: str = field(STRING)
    subscribed_topic_names: list[str] = field(Array(STRING))


@message(api_key=11, kind="coordinator-key", versions=(0, 0))
class ShareGroupMetadataKey:
    group_id: str = field(STRING)


@message(api_key=11, kind="coordinator-value", versions=(0, 0), flexible=0)
class ShareGroupMetadataValue:
    epoch: int = field(INT32)
    metadata_hash: int = field(INT64)


@message(api_key=12, kind="coordinator-key", versions=(0, 0))
class ShareGroupTargetAssignmentMetadataKey:
    group_id: str = field(STRING)


@message(api_key=12, kind="coordinator-value", versions=(0, 0), flexible=0)
class ShareGroupTargetAssignmentMetadataValue:
    assignment_epoch: int = field(INT32)
    assignment_timestamp: int = field(INT64, tag=0, ignorable=True)


@message(api_key=13, kind="coordinator-key", versions=(0, 0))
class ShareGroupTargetAssignmentMemberKey:
    group_id: str = field(STRING)
    member_id: str = field(STRING)


@struct
class TopicPartitions:
    topic_id: bytes = field(UUID)
    partitions: list[int] = field(Array(INT32))


@message(api_key=13, kind="coordinator-value", versions=(0, 0), flexible=0)
class ShareGroupTargetAssignmentMemberValue:
    topic_partitions: list[TopicPartitions] = field(Array(TopicPartitions))


@message(api_key=14, kind="coordinator-key", versions=(0, 0))
class ShareGroupCurrentMemberAssignmentKey:
    group_id: str = field(STRING)
    member_id: str = field(STRING)


@message(api_key=14, kind="coordinator-value", versions=(0, 0), flexible=0)
class ShareGroupCurrentMemberAssignmentValue:
    member_epoch: int = field(INT32)
    previous_member_epoch: int = field(INT32)
    state: int = field(INT8)
    assigned_partitions: list[TopicPartitions] = field(Array(TopicPartitions))
