"""CreateTopics, API key 19."""

from __future__ import annotations

from kbroker.protocol.message import field, message, struct
from kbroker.protocol.types import BOOL, INT8, INT16, INT32, STRING, UUID, Array


@struct
class CreatableReplicaAssignment:
    partition_index: int = field(INT32)
    broker_ids: list[int] = field(Array(INT32))


@struct
class CreatableTopicConfig:
    name: str = field(STRING)
    value: str | None = field(STRING, nullable_since=0)


@struct
class CreatableTopic:
    name: str = field(STRING)
    num_partitions: int = field(INT32)
    replication_factor: int = field(INT16)
    assignments: list[CreatableReplicaAssignment] = field(Array(CreatableReplicaAssignment))
    configs: list[CreatableTopicConfig] = field(Array(CreatableTopicConfig))


@message(api_key=19, kind="request", versions=(0, 7), flexible=5)
class CreateTopicsRequest:
    topics: list[CreatableTopic] = field(Array(CreatableTopic))
    timeout_ms: int = field(INT32, default=60000)
    validate_only: bool = field(BOOL, since=1)


@struct
class CreatableTopicConfigs:
    name: str = field(STRING)
    value: str | None = field(STRING, nullable_since=0)
    read_only: bool = field(BOOL)
    config_source: int = field(INT8, default=-1, ignorable=True)
    is_sensitive: bool = field(BOOL)


@struct
class CreatableTopicResult:
    name: str = field(STRING)
    topic_id: bytes = field(UUID, since=7, ignorable=True)
    error_code: int = field(INT16)
    error_message: str | None = field(STRING, since=1, nullable_since=1, ignorable=True)
    topic_config_error_code: int = field(INT16, since=5, tag=0, ignorable=True)
    num_partitions: int = field(INT32, since=5, default=-1, ignorable=True)
    replication_factor: int = field(INT16, since=5, default=-1, ignorable=True)
    configs: list[CreatableTopicConfigs] | None = field(
        Array(CreatableTopicConfigs), since=5, nullable_since=5, ignorable=True
    )


@message(api_key=19, kind="response", versions=(0, 7), flexible=5)
class CreateTopicsResponse:
    throttle_time_ms: int = field(INT32, since=2, ignorable=True)
    topics: list[CreatableTopicResult] = field(Array(CreatableTopicResult))
