"""AlterReplicaLogDirs 0–2: move replicas to another data directory (KIP-113).

There is one data directory, so a replica is where it is asked to be, or the directory does not exist. Of
several directories for one partition the last counts.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from kbroker.errors import describe
from kbroker.protocol.errors import ErrorCode
from kbroker.protocol.messages.alter_replica_log_dirs import (
    AlterReplicaLogDirPartitionResult,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirTopicResult,
)
from kbroker.requests.long_requests import Steps, lazily
from kbroker.security.acls import AclOperation

if TYPE_CHECKING:
    from kbroker.broker import Broker
    from kbroker.requests.context import RequestContext

_Paths = dict[str, dict[int, str]]
"""Topic, partition, where it should be."""


def handle(
    broker: Broker, request: AlterReplicaLogDirsRequest, context: RequestContext
) -> Steps[AlterReplicaLogDirsResponse]:
    resources = broker.resources(context)
    own_path = resources.log_directory(AclOperation.ALTER).path
    paths: _Paths = {}
    for directory in request.dirs:
        for topic in directory.topics:
            if topic.partitions:
                paths.setdefault(topic.name, {}).update(dict.fromkeys(topic.partitions, directory.path))
            yield None

    def move(topic: str, partition: int, path: str) -> ErrorCode:
        if path != own_path:
            return ErrorCode.LOG_DIR_NOT_FOUND
        if not resources.has_partition(topic, partition):
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        return ErrorCode.NONE

    return _response(paths, move)


def refuse(
    request: AlterReplicaLogDirsRequest, context: RequestContext, error: BaseException
) -> AlterReplicaLogDirsResponse:
    """Topics stand below directories in the request, and at the top of the answer."""
    code, _ = describe(error)
    topics = [topic for directory in request.dirs for topic in directory.topics]
    return _response({each.name: dict.fromkeys(each.partitions, "") for each in topics}, lambda *_: code)


def _response(paths: _Paths, code: Callable[[str, int, str], ErrorCode]) -> AlterReplicaLogDirsResponse:
    def result(topic: str, partitions: dict[int, str]) -> AlterReplicaLogDirTopicResult:
        return AlterReplicaLogDirTopicResult(
            topic,
            lazily(
                list(partitions.items()),
                lambda each: AlterReplicaLogDirPartitionResult(each[0], code(topic, *each)),
            ),
        )

    return AlterReplicaLogDirsResponse(results=lazily(list(paths.items()), lambda each: result(*each)))
