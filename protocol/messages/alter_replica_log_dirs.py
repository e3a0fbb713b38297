"""AlterReplicaLogDirs, API key 34."""

from __future__ import annotations

from kbroker.protocol.message import field, message, struct
from kbroker.protocol.types import INT16, INT32, STRING, Array


@struct
class AlterReplicaLogDirTopic:
    name: str = field(STRING)
    partitions: list[int] = field(Array(INT32))


@struct
class AlterReplicaLogDir:
    path: str = field(STRING)
    topics: list[AlterReplicaLogDirTopic] = field(Array(AlterReplicaLogDirTopic))


@message(api_key=34, kind="request", versions=(0, 2), flexible=2)
class AlterReplicaLogDirsRequest:
    dirs: list[AlterReplicaLogDir] = field(Array(AlterReplicaLogDir))


@struct
class AlterReplicaLogDirPartitionResult:
    partition_index: int = field(INT32)
    error_code: int = field(INT16)


@struct
class AlterReplicaLogDirTopicResult:
    topic_name: str = field(STRING)
    partitions: list[AlterReplicaLogDirPartitionResult] = field(Array(AlterReplicaLogDirPartitionResult))


@message(api_key=34, kind="response", versions=(0, 2), flexible=2)
class AlterReplicaLogDirsResponse:
    throttle_time_ms: int = field(INT32)
    results: list[AlterReplicaLogDirTopicResult] = field(Array(AlterReplicaLogDirTopicResult))
