from __future__ import annotations

import pytest

from kbroker.protocol.errors import ErrorCode
from kbroker.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)


@pytest.fixture
def reassign(cluster):
    def reassign(partition: int, replicas: list[int] | None, topic: str = "t", version: int = 1):
        asked = [ReassignableTopic(topic, [ReassignablePartition(partition, replicas)])]
        response = cluster.send(AlterPartitionReassignmentsRequest(topics=asked), version)
        assert (response.error_code, response.error_message) == (ErrorCode.NONE, None)
        (answered,) = response.responses
        (result,) = answered.partitions
        assert (answered.name, result.partition_index) == (topic, partition)
        return result.error_code

    return reassign


@pytest.fixture(autouse=True)
def topic(cluster):
    cluster.create("t")


@pytest.mark.parametrize("version", [0, 1])
def test_a_partition_may_stay_where_it_is(reassign, version):
    assert reassign(0, [1], version=version) == ErrorCode.NONE


@pytest.mark.parametrize("replicas", [[], [2], [1, 2], [1, 1], [-1]])
def test_a_partition_can_be_nowhere_else(reassign, replicas):
    assert reassign(0, replicas) == ErrorCode.INVALID_REPLICA_ASSIGNMENT


def test_there_is_no_move_to_cancel(reassign):
    assert reassign(0, None) == ErrorCode.NO_REASSIGNMENT_IN_PROGRESS


@pytest.mark.parametrize(("topic_name", "partition"), [("nope", 0), ("t", 1), ("t", -1)])
@pytest.mark.parametrize("replicas", [[1], [5], None])
def test_an_unknown_partition_is_reported(reassign, topic_name, partition, replicas):
    assert reassign(partition, replicas, topic_name) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


@pytest.mark.parametrize("allowed", [True, False])
def test_the_answer_repeats_whether_the_replication_factor_may_change(cluster, allowed):
    request = AlterPartitionReassignmentsRequest(allow_replication_factor_change=allowed)
    assert cluster.send(request, 1).allow_replication_factor_change is allowed
