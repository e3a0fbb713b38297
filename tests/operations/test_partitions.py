from __future__ import annotations

from typing import Any

import pytest

from kbroker.operations.offsets import EARLIEST, LATEST
from kbroker.operations.partitions import (
    describe_partition,
    describe_partitions,
    offset_at,
    record_times,
    topic_with_partition,
)
from kbroker.pending import Pending
from kbroker.protocol.errors import ApiError, ErrorCode
from kbroker.requests.resources import Resources
from kbroker.security.acls import AclOperation
from kbroker.storage.memory import MemoryDirectory
from tests.handlers.conftest import Cluster
from tests.handlers.test_resources import NobodyMay
from tests.support.late_logs import LateDirectory


class Client:
    listener = "PLAINTEXT"
    local_address = ("127.0.0.1", 9092)


@pytest.fixture(params=[MemoryDirectory, LateDirectory], ids=["memory", "late"])
def cluster(request: pytest.FixtureRequest) -> Cluster:
    return Cluster({"node.id": "1"}, request.param())


@pytest.fixture
def resources(cluster: Cluster) -> Resources:
    return cluster.broker.resources(cluster.session())


def delivered(cluster: Cluster, result: Any) -> Any:
    while isinstance(result, Pending):
        cluster.deliver()
        result = result.result()
    return result


def test_a_partition_tells_its_offsets_and_its_leader(cluster: Cluster, resources: Resources) -> None:
    cluster.create("t", 2)
    cluster.produce("t", 5, 7, 6, partition=1)
    described = delivered(cluster, describe_partition(resources, "t", 1, Client()))
    assert described.partition == 1
    assert described.replicas == (1, 0, [1], [1])
    assert described.offsets[:4] == (0, 3, 3, 3)
    assert described.offsets.size_bytes == cluster.broker.find_log("t", 1).size_bytes > 0


def test_partitions_are_described_page_by_page(cluster: Cluster, resources: Resources) -> None:
    cluster.create("t", 5)

    def page(first: int, limit: int) -> list[int]:
        steps = describe_partitions(resources, "t", Client(), first, limit)
        found = delivered(cluster, cluster.broker.long_requests.run(steps))
        return [each.partition for each in found]

    assert page(0, 2) == [0, 1]
    assert page(3, 10) == [3, 4]
    assert page(5, 10) == []


def test_the_times_of_records_are_the_first_and_the_largest(cluster: Cluster, resources: Resources) -> None:
    cluster.create("t")
    assert delivered(cluster, record_times(resources, "t", 0)) == (None, None)
    cluster.produce("t", 5, 9, 6)
    assert delivered(cluster, record_times(resources, "t", 0)) == (5, 9)


def test_an_offset_is_found_by_time_and_by_name(cluster: Cluster, resources: Resources) -> None:
    cluster.create("t")
    cluster.produce("t", 5, 7, 9)

    def at(timestamp: int) -> int | None:
        found = delivered(cluster, offset_at(resources, "t", 0, timestamp))
        return None if found is None else found.offset

    assert (at(EARLIEST), at(LATEST), at(6), at(10)) == (0, 3, 1, None)


def test_a_partition_that_is_not_there_is_named(cluster: Cluster, resources: Resources) -> None:
    cluster.create("t", 2)
    with pytest.raises(ApiError, match="no partition 2") as refused:
        topic_with_partition(resources, "t", 2)
    assert refused.value.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_who_may_not_describe_the_cluster_is_not_told_the_size(cluster: Cluster) -> None:
    class TopicsOnly(NobodyMay):
        def authorize(self, caller: Any, operation: Any, resource_type: Any, name: str) -> bool:
            return operation is AclOperation.DESCRIBE and name == "t"

    cluster.create("t")
    cluster.broker.authorizer = TopicsOnly()
    resources = cluster.broker.resources(cluster.session())
    described = delivered(cluster, describe_partition(resources, "t", 0, Client()))
    assert described.offsets.size_bytes is None
