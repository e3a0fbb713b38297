from __future__ import annotations

from typing import Any

import pytest

from kbroker.pending import Pending
from kbroker.protocol.errors import ErrorCode
from kbroker.protocol.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
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


def wanted(name: str = "t", partitions: int = 1, factor: int = 1, **fields: Any) -> CreatableTopic:
    configs = [CreatableTopicConfig(*each) for each in fields.get("configs", ())]
    assignments = [CreatableReplicaAssignment(*each) for each in fields.get("assignments", ())]
    return CreatableTopic(name, partitions, factor, assignments, configs)


def send(cluster: Any, *topics: CreatableTopic, version: int = 7, **fields: Any) -> Any:
    return cluster.send(CreateTopicsRequest(topics=list(topics), timeout_ms=10_000, **fields), version).topics


@pytest.mark.parametrize("version", range(2, 8))
def test_a_topic_is_created_and_from_version_5_on_described(cluster: Any, version: int) -> None:
    (created,) = send(cluster, wanted(partitions=3, configs=[("retention.ms", "5")]), version=version)
    assert (created.name, created.error_code, created.error_message) == ("t", ErrorCode.NONE, None)
    assert any(created.topic_id) is (version >= 7)
    described = version >= 5
    assert created.num_partitions == (3 if described else -1)
    assert created.replication_factor == (1 if described else -1)
    configs = {config.name: config.value for config in created.configs or ()}
    assert configs.get("retention.ms") == ("5" if described else None)


REFUSED = {
    "an empty name": (wanted(""), "INVALID_TOPIC_EXCEPTION"),
    "dots for a name": (wanted(".."), "INVALID_TOPIC_EXCEPTION"),
    "a space in the name": (wanted("a b"), "INVALID_TOPIC_EXCEPTION"),
    "a name of 250 letters": (wanted("x" * 250), "INVALID_TOPIC_EXCEPTION"),
    "no partitions": (wanted(partitions=0), "INVALID_PARTITIONS"),
    "fewer than none": (wanted(partitions=-2), "INVALID_PARTITIONS"),
    "no replicas": (wanted(factor=0), "INVALID_REPLICATION_FACTOR"),
    "two replicas": (wanted(factor=2), "INVALID_REPLICATION_FACTOR"),
    "a config that does not exist": (wanted(configs=[("no.such", "1")]), "INVALID_CONFIG"),
    "a config without a value": (wanted(configs=[("retention.ms", None)]), "INVALID_CONFIG"),
    "a config out of range": (wanted(configs=[("retention.ms", "-2")]), "INVALID_CONFIG"),
    "a broker that is not there": (
        wanted("t", -1, -1, assignments=[(0, [99])]),
        "INVALID_REPLICA_ASSIGNMENT",
    ),
    "a broker twice": (wanted("t", -1, -1, assignments=[(0, [1, 1])]), "INVALID_REPLICA_ASSIGNMENT"),
    "a gap": (wanted("t", -1, -1, assignments=[(0, [1]), (2, [1])]), "INVALID_REPLICA_ASSIGNMENT"),
    "assignments and a count": (wanted("t", 1, -1, assignments=[(0, [1])]), "INVALID_REQUEST"),
}


@pytest.mark.parametrize("version", [2, 7])
@pytest.mark.parametrize("case", REFUSED)
def test_a_topic_that_cannot_be_is_refused_with_a_reason(cluster: Any, case: str, version: int) -> None:
    topic, code = REFUSED[case]
    (refused,) = send(cluster, topic, version=version)
    assert ErrorCode(refused.error_code).name == code
    assert refused.error_message


def test_a_topic_that_is_there_already_is_refused(cluster: Any) -> None:
    cluster.create("t")
    (refused,) = send(cluster, wanted("t"))
    assert refused.error_code == ErrorCode.TOPIC_ALREADY_EXISTS


def test_names_that_differ_in_dots_and_underscores_only_collide(cluster: Any) -> None:
    cluster.create("a.b")
    (refused,) = send(cluster, wanted("a_b"))
    assert refused.error_code == ErrorCode.INVALID_TOPIC_EXCEPTION


def test_a_topic_that_is_named_twice_is_not_created(cluster: Any) -> None:
    (refused,) = send(cluster, wanted("t"), wanted("t"))
    assert refused.error_code == ErrorCode.INVALID_REQUEST


def test_a_request_may_ask_whether_it_could_be_done(cluster: Any) -> None:
    (possible,) = send(cluster, wanted("t"), validate_only=True)
    assert possible.error_code == ErrorCode.NONE
    (created,) = send(cluster, wanted("t"))
    assert created.error_code == ErrorCode.NONE
    (refused,) = send(cluster, wanted("t"), validate_only=True)
    assert refused.error_code == ErrorCode.TOPIC_ALREADY_EXISTS
