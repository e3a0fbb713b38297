"""Record types 3 and 5 to 8: groups of the consumer protocol (KIP-848).

Type 4, partition metadata, is not written any more; 16, what regular expressions mean, is not made here.
"""

from __future__ import annotations

from kbroker.protocol.message import field, message, struct
from kbroker.protocol.types import BYTES, INT8, INT32, INT64, STRING, UUID, Array


@message(api_key=3, kind="coordinator-key", versions=(0, 0))
class ConsumerGroupMetadataKey:
    group_id: str = field(STRING)


@message(api_key=3, kind="coordinator-value", versions=(0, 0), flexible=0)
class ConsumerGroupMetadataValue:
    epoch: int = field(INT32)
    metadata_hash: int = field(INT64, tag=0)


@message(api_key=5, kind="coordinator-key", versions=(0, 0))
class ConsumerGroupMemberMetadataKey:
    group_id: str = field(STRING)
    member_id: str = field(STRING)


@struct
class ClassicProtocol:
    name: str = field(STRING)
    metadata: bytes = field(BYTES)


@struct
class ClassicMemberMetadata:
    session_timeout_ms: int = field(INT32)
    supported_protocols: list[ClassicProtocol] = field(Array(ClassicProtocol))


@message(api_key=5, kind="coordinator-value", versions=(0, 0), flexible=0)
class ConsumerGroupMemberMetadataValue:
    instance_id: str | None = field(STRING, nullable_since=0)
    rack_id: str | None = field(STRING, nullable_since=0)
    client_id: str = field(STRING)
    client_host: str = field(STRING)
    subscribed_topic_names: list[str] = field(Array(STRING))
    subscribed_topic_regex: str | None = field(STRING, nullable_since=0)
    rebalance_timeout_ms: int = field(INT32, default=-1)
    server_assignor: str | None = field(STRING, nullable_since=0)
    classic_member_metadata: ClassicMemberMetadata | None = field(
        ClassicMemberMetadata, tag=0, nullable_since=0
    )


@message(api_key=6, kind="coordinator-key", versions=(0, 0))
class ConsumerGroupTargetAssignmentMetadataKey:
    group_id: str = field(STRING)


@message(api_key=6, kind="coordinator-value", versions=(0, 0), flexible=0)
class ConsumerGroupTargetAssignmentMetadataValue:
    assignment_epoch: int = field(INT32)
    assignment_timestamp: int = field(INT64, tag=0, ignorable=True)


@message(api_key=7, kind="coordinator-key", versions=(0, 0))
class ConsumerGroupTargetAssignmentMemberKey:
    group_id: str = field(STRING)
    member_id: str = field(STRING)


@struct
class TargetPartitions:
    topic_id: bytes = field(UUID)
    partitions: list[int] = field(Array(INT32))


@message(api_key=7, kind="coordinator-value", versions=(0, 0), flexible=0)
class ConsumerGroupTargetAssignmentMemberValue:
    topic_partitions: list[TargetPartitions] = field(Array(TargetPartitions))


@message(api_key=8, kind="coordinator-key", versions=(0, 0))
class ConsumerGroupCurrentMemberAssignmentKey:
    group_id: str = field(STRING)
    member_id: str = field(STRING)


@struct
class HeldPartitions:
    topic_id: bytes = field(UUID)
    partitions: list[int] = field(Array(INT32))
    assignment_epochs: list[int] | None = field(Array(INT32), tag=0, nullable_since=0)


@message(api_key=8, kind="coordinator-value", versions=(0, 0), flexible=0)
class ConsumerGroupCurrentMemberAssignmentValue:
    member_epoch: int = field(INT32)
    previous_member_epoch: int = field(INT32)
    state: int = field(INT8)
    assigned_partitions: list[HeldPartitions] = field(Array(HeldPartitions))
    partitions_pending_revocation: list[HeldPartitions] = field(Array(HeldPartitions))
