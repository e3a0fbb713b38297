from __future__ import annotations

import pytest

from kbroker.protocol.errors import ErrorCode
from kbroker.protocol.messages.describe_quorum import (
    DescribeQuorumRequest,
    RequestPartitionData,
    RequestTopicData,
)


def request(*topics: tuple[str, list[int]]) -> DescribeQuorumRequest:
    return DescribeQuorumRequest(
        topics=[
            RequestTopicData(name, [RequestPartitionData(p) for p in partitions])
            for name, partitions in topics
        ]
    )


@pytest.mark.parametrize("version", [0, 1, 2])
def test_this_broker_leads_a_quorum_of_one(cluster, version):
    response = cluster.send(request(("__cluster_metadata", [0])), version)
    assert response.error_code == ErrorCode.NONE
    (topic,) = response.topics
    (partition,) = topic.partitions
    (voter,) = partition.current_voters
    assert (partition.error_code, partition.leader_id, voter.replica_id) == (ErrorCode.NONE, 1, 1)
    assert partition.leader_epoch > 0
    assert voter.log_end_offset == partition.high_watermark > 0
    assert partition.observers == []
    if version >= 1:
        assert voter.last_caught_up_timestamp == cluster.now_ms
    if version >= 2:
        (node,) = response.nodes
        (listener,) = node.listeners
        assert (node.node_id, listener.host, listener.port) == (1, "127.0.0.1", 19092)


def test_the_high_watermark_rises_with_every_change_of_metadata(cluster):
    def high_watermark() -> int:
        return cluster.send(request(("__cluster_metadata", [0])), 2).topics[0].partitions[0].high_watermark

    before = high_watermark()
    cluster.create("t")
    assert high_watermark() > before


@pytest.mark.parametrize(
    "asked",
    [
        [("t", [0])],
        [("__cluster_metadata", [1])],
        [("__cluster_metadata", [0, 1])],
        [("__cluster_metadata", [0]), ("t", [0])],
    ],
)
def test_whoever_asks_for_anything_else_gets_nothing(cluster, asked):
    response = cluster.send(request(*asked), 2)
    codes = {partition.error_code for topic in response.topics for partition in topic.partitions}
    assert codes == {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
    assert [(t.topic_name, [p.partition_index for p in t.partitions]) for t in response.topics] == asked
    assert response.nodes == []
