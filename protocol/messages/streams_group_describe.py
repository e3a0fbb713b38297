"""StreamsGroupDescribe, API key 89."""

from __future__ import annotations

from kbroker.protocol.message import field, message, struct
from kbroker.protocol.types import BOOL, INT16, INT32, INT64, STRING, UINT16, Array


@message(api_key=89, kind="request", versions=(0, 0), flexible=0)
class StreamsGroupDescribeRequest:
    group_ids: list[str] = field(Array(STRING))
    include_authorized_operations: bool = field(BOOL)


@struct
class KeyValue:
    key: str = field(STRING)
    value: str = field(STRING)


@struct
class TopicInfo:
    name: str = field(STRING)
    partitions: int = field(INT32)
    replication_factor: int = field(INT16)
    topic_configs: list[KeyValue] = field(Array(KeyValue))


@struct
class Subtopology:
    subtopology_id: str = field(STRING)
    source_topics: list[str] = field(Array(STRING))
    repartition_sink_topics: list[str] = field(Array(STRING))
    state_changelog_topics: list[TopicInfo] = field(Array(TopicInfo))
    repartition_source_topics: list[TopicInfo] = field(Array(TopicInfo))


@struct
class Topology:
    epoch: int = field(INT32)
    subtopologies: list[Subtopology] | None = field(Array(Subtopology), nullable_since=0, default=None)


@struct
class Endpoint:
    host: str = field(STRING)
    port: int = field(UINT16)


@struct
class TaskOffset:
    subtopology_id: str = field(STRING)
    partition: int = field(INT32)
    offset: int = field(INT64)


@struct
class TaskIds:
    subtopology_id: str = field(STRING)
    partitions: list[int] = field(Array(INT32))


@struct
class Assignment:
    active_tasks: list[TaskIds] = field(Array(TaskIds))
    standby_tasks: list[TaskIds] = field(Array(TaskIds))
    warmup_tasks: list[TaskIds] = field(Array(TaskIds))


@struct
class Member:
    member_id: str = field(STRING)
    member_epoch: int = field(INT32)
    instance_id: str | None = field(STRING, nullable_since=0, default=None)
    rack_id: str | None = field(STRING, nullable_since=0, default=None)
    client_id: str = field(STRING)
    client_host: str = field(STRING)
    topology_epoch: int = field(INT32)
    process_id: str = field(STRING)
    user_endpoint: Endpoint | None = field(Endpoint, nullable_since=0, default=None)
    client_tags: list[KeyValue] = field(Array(KeyValue))
    task_offsets: list[TaskOffset] = field(Array(TaskOffset))
    task_end_offsets: list[TaskOffset] = field(Array(TaskOffset))
    assignment: Assignment = field(Assignment)
    target_assignment: Assignment = field(Assignment)
    is_classic: bool = field(BOOL)


@struct
class DescribedGroup:
    error_code: int = field(INT16)
    error_message: str | None = field(STRING, nullable_since=0, default=None)
    group_id: str = field(STRING)
    group_state: str = field(STRING)
    group_epoch: int = field(INT32)
    assignment_epoch: int = field(INT32)
    topology: Topology | None = field(Topology, nullable_since=0, default=None)
    members: list[Member] = field(Array(Member))
    authorized_operations: int = field(INT32, default=-2147483648)


@message(api_key=89, kind="response", versions=(0, 0), flexible=0)
class StreamsGroupDescribeResponse:
    throttle_time_ms: int = field(INT32)
    groups: list[DescribedGroup] = field(Array(DescribedGroup))
