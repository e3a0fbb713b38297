from __future__ import annotations

import pytest

from kbroker.protocol.errors import ErrorCode
from kbroker.protocol.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchTopic,
    LeaderIdAndEpoch,
    NodeEndpoint,
)

from .conftest import on_late_logs_too

pytestmark = on_late_logs_too


@pytest.fixture
def fetch(cluster):
    topic = cluster.create("t")
    cluster.broker.unclean_starts = 3
    cluster.broker.find_log("t", 0).set_leader_epoch(3)

    def fetch(current_leader_epoch: int, version: int):
        asked = FetchPartition(
            partition=0, current_leader_epoch=current_leader_epoch, fetch_offset=0, partition_max_bytes=1000
        )
        named = {"topic_id": topic.topic_id} if version >= 13 else {"topic": "t"}
        return cluster.send(
            FetchRequest(topics=[FetchTopic(**named, partitions=[asked])], max_bytes=1000), version
        )

    return fetch


@pytest.mark.parametrize("version", range(9, 19))
def test_another_leader_epoch_than_ours_is_refused_at_every_version(fetch, version):
    for epoch, code in (
        (2, ErrorCode.FENCED_LEADER_EPOCH),
        (4, ErrorCode.UNKNOWN_LEADER_EPOCH),
        (3, ErrorCode.NONE),
        (-1, ErrorCode.NONE),
    ):
        (topic,) = fetch(epoch, version).responses
        assert topic.partitions[0].error_code == code


def test_from_version_16_on_a_fenced_client_is_told_who_leads(fetch):
    response = fetch(2, 16)
    assert response.responses[0].partitions[0].current_leader == LeaderIdAndEpoch(1, 3)
    assert response.node_endpoints == [NodeEndpoint(1, "127.0.0.1", 19092)]
    assert fetch(2, 15).node_endpoints == []
