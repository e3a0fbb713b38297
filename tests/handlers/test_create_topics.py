"""CreateTopics and topics made by asking for them, where the broker's defaults decide."""

from __future__ import annotations

from typing import Any

import pytest

from kbroker.pending import Pending
from kbroker.protocol.errors import ErrorCode
from kbroker.protocol.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreateTopicsRequest,
)
from kbroker.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic


def create(cluster: Any, **wanted: Any) -> ErrorCode:
    answer = cluster.send(CreateTopicsRequest(topics=[CreatableTopic(name="new", **wanted)]), 7)
    return ErrorCode(answer.topics[0].error_code)


def ask_for(cluster: Any, name: str) -> ErrorCode:
    answer = cluster.send(MetadataRequest(topics=[MetadataRequestTopic(name=name)]), 9)
    return ErrorCode(answer.topics[0].error_code)


def test_a_topic_may_leave_its_replication_factor_to_the_broker(cluster: Any) -> None:
    assert create(cluster, num_partitions=1, replication_factor=-1) is ErrorCode.NONE
    assert ask_for(cluster, "asked-for") is ErrorCode.NONE


@pytest.mark.parametrize("factor", ["0", "3"])
class TestADefaultReplicationFactorOfMoreOrLessThanOneBroker:
    @pytest.fixture
    def settings(self, factor: str) -> dict[str, str]:
        return {"default.replication.factor": factor}

    def test_refuses_topics_that_rely_on_it(self, cluster: Any) -> None:
        refused = create(cluster, num_partitions=1, replication_factor=-1)
        assert refused is ErrorCode.INVALID_REPLICATION_FACTOR
        assert cluster.broker.topics.get("new") is None

    def test_does_not_matter_to_a_topic_with_a_factor_of_its_own(self, cluster: Any) -> None:
        assert create(cluster, num_partitions=1, replication_factor=1) is ErrorCode.NONE

    def test_does_not_matter_to_a_topic_with_assigned_replicas(self, cluster: Any) -> None:
        assigned = [CreatableReplicaAssignment(0, [1])]
        given = create(cluster, num_partitions=-1, replication_factor=-1, assignments=assigned)
        assert given is ErrorCode.NONE

    def test_leaves_a_topic_that_is_asked_for_unknown(self, cluster: Any) -> None:
        assert ask_for(cluster, "asked-for") is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert cluster.broker.topics.get("asked-for") is None

    def test_is_mentioned_at_the_start(self, cluster: Any, factor: str) -> None:
        expected = f"default.replication.factor: {factor} copies cannot be kept by one broker"
        assert expected in cluster.broker.settings.warning


def test_a_creation_whose_client_goes_away_is_done_all_the_same(cluster, monkeypatch):
    stored = Pending()
    monkeypatch.setattr(cluster.catalog, "create_topic", lambda *_: stored)
    request = CreateTopicsRequest(topics=[CreatableTopic(name="t", num_partitions=1, replication_factor=1)])
    cluster.send(request, 7).abandon()
    stored.resolve(None)
    assert cluster.broker.topics.get("t") is not None
