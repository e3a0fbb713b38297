"""Record types 17 and 19 to 23: streams groups (KIP-1071)."""

from __future__ import annotations

from kbroker.protocol.message import field, message, struct
from kbroker.protocol.types import INT8, INT16, INT32, INT64, STRING, UINT16, Array


@struct
class AssignmentConfig:
    key: str = field(STRING)
    value: str = field(STRING)


@message(api_key=17, kind="coordinator-key", versions=(0, 0))
class StreamsGroupMetadataKey:
    group_id: str = field(STRING)


@message(api_key=17, kind="coordinator-value", versions=(0, 0), flexible=0)
class StreamsGroupMetadataValue:
    epoch: int = field(INT32)
    metadata_hash: int = field(INT64)
    validated_topology_epoch: int = field(INT32, tag=0, default=-1)
    last_assignment_configs: list[AssignmentConfig] | None = field(
        Array(AssignmentConfig), tag=1, nullable_since=0
    )


@message(api_key=19, kind="coordinator-key", versions=(0, 0))
class StreamsGroupMemberMetadataKey:
    group_id: str = field(STRING)
    member_id: str = field(STRING)


@struct
class Endpoint:
    host: str = field(STRING)
    port: int = field(UINT16)


@struct
class KeyValue:
    key: str = field(STRING)
    value: str = field(STRING)


@message(api_key=19, kind="coordinator-value", versions=(0, 0), flexible=0)
class StreamsGroupMemberMetadataValue:
    instance_id: str | None = field(STRING, nullable_since=0)
    rack_id: str | None = field(STRING, nullable_since=0)
    client_id: str = field(STRING)
    client_host: str = field(STRING)
    rebalance_timeout_ms: int = field(INT32, default=-1)
    topology_epoch: int = field(INT32)
    process_id: str = field(STRING)
    user_endpoint: Endpoint | None = field(Endpoint, nullable_since=0, default=None)
    client_tags: list[KeyValue] = field(Array(KeyValue))


@message(api_key=20, kind="coordinator-key", versions=(0, 0))
class StreamsGroupTargetAssignmentMetadataKey:
    group_id: str = field(STRING)


@message(api_key=20, kind="coordinator-value", versions=(0, 0), flexible=0)
class StreamsGroupTargetAssignmentMetadataValue:
    assignment_epoch: int = field(INT32)
    assignment_timestamp: int = field(INT64, tag=0, ignorable=True)


@message(api_key=21, kind="coordinator-key", versions=(0, 0))
class StreamsGroupTargetAssignmentMemberKey:
    group_id: str = field(STRING)
    member_id: str = field(STRING)


@struct
class TargetTasks:
    subtopology_id: str = field(STRING)
    partitions: list[int] = field(Array(INT32))


@message(api_key=21, kind="coordinator-value", versions=(0, 0), flexible=0)
class StreamsGroupTargetAssignmentMemberValue:
    active_tasks: list[TargetTasks] = field(Array(TargetTasks))
    standby_tasks: list[TargetTasks] = field(Array(TargetTasks))
    warmup_tasks: list[TargetTasks] = field(Array(TargetTasks))


@message(api_key=22, kind="coordinator-key", versions=(0, 0))
class StreamsGroupCurrentMemberAssignmentKey:
    group_id: str = field(STRING)
    member_id: str = field(STRING)


@struct
class HeldTasks:
    subtopology_id: str = field(STRING)
    partitions: list[int] = field(Array(INT32))
    assignment_epochs: list[int] | None = field(Array(INT32), tag=0, nullable_since=0)


@message(api_key=22, kind="coordinator-value", versions=(0, 0), flexible=0)
class StreamsGroupCurrentMemberAssignmentValue:
    member_epoch: int = field(INT32)
    previous_member_epoch: int = field(INT32)
    state: int = field(INT8)
    active_tasks: list[HeldTasks] = field(Array(HeldTasks))
    standby_tasks: list[HeldTasks] = field(Array(HeldTasks))
    warmup_tasks: list[HeldTasks] = field(Array(HeldTasks))
    active_tasks_pending_revocation: list[HeldTasks] = field(Array(HeldTasks))
    standby_tasks_pending_revocation: list[HeldTasks] = field(Array(HeldTasks))
    warmup_tasks_pending_revocation: list[HeldTasks] = field(Array(HeldTasks))


@message(api_key=23, kind="coordinator-key", versions=(0, 0))
class StreamsGroupTopologyKey:
    group_id: str = field(STRING)


@struct
class TopicConfig:
    key: str = field(STRING)
    value: str = field(STRING)


@struct
class TopicInfo:
    name: str = field(STRING)
    partitions: int = field(INT32)
    replication_factor: int = field(INT16)
    topic_configs: list[TopicConfig] = field(Array(TopicConfig))


@struct
class CopartitionGroup:
    source_topics: list[int] = field(Array(INT16))
    source_topic_regex: list[int] = field(Array(INT16))
    repartition_source_topics: list[int] = field(Array(INT16))


@struct
class Subtopology:
    subtopology_id: str = field(STRING)
    source_topics: list[str] = field(Array(STRING))
    source_topic_regex: list[str] = field(Array(STRING))
    state_changelog_topics: list[TopicInfo] = field(Array(TopicInfo))
    repartition_sink_topics: list[str] = field(Array(STRING))
    repartition_source_topics: list[TopicInfo] = field(Array(TopicInfo))
    copartition_groups: list[CopartitionGroup] = field(Array(CopartitionGroup))


@message(api_key=23, kind="coordinator-value", versions=(0, 0), flexible=0)
class StreamsGroupTopologyValue:
    epoch: int = field(INT32)
    subtopologies: list[Subtopology] = field(Array(Subtopology))
