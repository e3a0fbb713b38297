from __future__ import annotations

from typing import Any

import pytest

from kbroker.handlers.alter_replica_log_dirs import refuse
from kbroker.protocol.errors import ApiError, ErrorCode
from kbroker.protocol.messages.alter_replica_log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirTopic,
)
from tests.handlers.conftest import Cluster

NONE, UNKNOWN = ErrorCode.NONE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
NOT_FOUND = ErrorCode.LOG_DIR_NOT_FOUND


@pytest.fixture(autouse=True)
def topic(cluster: Cluster) -> None:
    cluster.create("t", partitions=2)


def moved(*dirs: tuple[str, list[tuple[str, list[int]]]]) -> AlterReplicaLogDirsRequest:
    return AlterReplicaLogDirsRequest(
        [
            AlterReplicaLogDir(path, [AlterReplicaLogDirTopic(*topic) for topic in topics])
            for path, topics in dirs
        ]
    )


def codes(response: Any) -> dict[str, dict[int, int]]:
    return {
        result.topic_name: {each.partition_index: each.error_code for each in result.partitions}
        for result in response.results
    }


@pytest.mark.parametrize("version", [0, 1, 2])
def test_a_replica_that_is_there_already_needs_no_move(cluster: Cluster, version: int) -> None:
    request = moved((cluster.logs.path, [("t", [0, 1, 2, -1, 0]), ("nope", [0]), ("none", [])]))
    assert codes(cluster.send(request, version)) == {
        "t": {0: NONE, 1: NONE, 2: UNKNOWN, -1: UNKNOWN},
        "nope": {0: UNKNOWN},
    }


def test_there_is_no_other_directory(cluster: Cluster) -> None:
    request = moved(("/elsewhere", [("t", [0]), ("nope", [0])]))
    assert codes(cluster.send(request, 2)) == {"t": {0: NOT_FOUND}, "nope": {0: NOT_FOUND}}


def test_the_last_directory_of_a_partition_counts(cluster: Cluster) -> None:
    here, elsewhere = (cluster.logs.path, [("t", [0])]), ("/elsewhere", [("t", [0, 1])])
    assert codes(cluster.send(moved(here, elsewhere), 2)) == {"t": {0: NOT_FOUND, 1: NOT_FOUND}}
    assert codes(cluster.send(moved(elsewhere, here), 2)) == {"t": {0: NONE, 1: NOT_FOUND}}


def test_a_refusal_names_the_partitions() -> None:
    request = moved(("/a", [("t", [0, 1])]), ("/b", [("u", [3])]))
    response = refuse(request, None, ApiError(ErrorCode.POLICY_VIOLATION))  # type: ignore[arg-type]
    assert isinstance(response, AlterReplicaLogDirsResponse)
    assert codes(response) == {
        "t": {0: ErrorCode.POLICY_VIOLATION, 1: ErrorCode.POLICY_VIOLATION},
        "u": {3: ErrorCode.POLICY_VIOLATION},
    }
