"""StreamsGroupHeartbeat, API key 88."""

from __future__ import annotations

from kbroker.protocol.message import field, message, struct
from kbroker.protocol.types import BOOL, INT8, INT16, INT32, INT64, STRING, UINT16, Array


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


@struct
class Topology:
    epoch: int = field(INT32)
    subtopologies: list[Subtopology] = field(Array(Subtopology))


@struct
class TaskIds:
    subtopology_id: str = field(STRING)
    partitions: list[int] = field(Array(INT32))


@struct
class Endpoint:
    host: str = field(STRING)
    port: int = field(UINT16)


@struct
class TaskOffset:
    subtopology_id: str = field(STRING)
    partition: int = field(INT32)
    offset: int = field(INT64)


@message(api_key=88, kind="request", versions=(0, 0), flexible=0)
class StreamsGroupHeartbeatRequest:
    group_id: str = field(STRING)
    member_id: str = field(STRING)
    member_epoch: int = field(INT32)
    endpoint_information_epoch: int = field(INT32)
    instance_id: str | None = field(STRING, nullable_since=0, default=None)
    rack_id: str | None = field(STRING, nullable_since=0, default=None)
    rebalance_timeout_ms: int = field(INT32, default=-1)
    topology: Topology | None = field(Topology, nullable_since=0, default=None)
    active_tasks: list[TaskIds] | None = field(Array(TaskIds), nullable_since=0, default=None)
    standby_tasks: list[TaskIds] | None = field(Array(TaskIds), nullable_since=0, default=None)
    warmup_tasks: list[TaskIds] | None = field(Array(TaskIds), nullable_since=0, default=None)
    process_id: str | None = field(STRING, nullable_since=0, default=None)
    user_endpoint: Endpoint | None = field(Endpoint, nullable_since=0, default=None)
    client_tags: list[KeyValue] | None = field(Array(KeyValue), nullable_since=0, default=None)
    task_offsets: list[TaskOffset] | None = field(Array(TaskOffset), nullable_since=0, default=None)
    task_end_offsets: list[TaskOffset] | None = field(Array(TaskOffset), nullable_since=0, default=None)
    shutdown_application: bool = field(BOOL)


@struct
class Status:
    status_code: int = field(INT8)
    status_detail: str = field(STRING)


@struct
class TopicPartition:
    topic: str = field(STRING)
    partitions: list[int] = field(Array(INT32))


@struct
class EndpointToPartitions:
    user_endpoint: Endpoint = field(Endpoint)
    active_partitions: list[TopicPartition] = field(Array(TopicPartition))
    standby_partitions: list[TopicPartition] = field(Array(TopicPartition))


@message(api_key=88, kind="response", versions=(0, 0), flexible=0)
class StreamsGroupHeartbeatResponse:
    throttle_time_ms: int = field(INT32)
    error_code: int = field(INT16)
    error_message: str | None = field(STRING, nullable_since=0, default=None)
    member_id: str = field(STRING)
    member_epoch: int = field(INT32)
    heartbeat_interval_ms: int = field(INT32)
    acceptable_recovery_lag: int = field(INT32)
    task_offset_interval_ms: int = field(INT32)
    status: list[Status] | None = field(Array(Status), nullable_since=0)
    active_tasks: list[TaskIds] | None = field(Array(TaskIds), nullable_since=0, default=None)
    standby_tasks: list[TaskIds] | None = field(Array(TaskIds), nullable_since=0, default=None)
    warmup_tasks: list[TaskIds] | None = field(Array(TaskIds), nullable_since=0, default=None)
    endpoint_information_epoch: int = field(INT32)
    partitions_by_user_endpoint: list[EndpointToPartitions] | None = field(
        Array(EndpointToPartitions), nullable_since=0, default=None
    )
