from __future__ import annotations

import pytest

from kbroker.pending import Pending
from kbroker.protocol.errors import ErrorCode
from kbroker.protocol.messages.create_partitions import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from kbroker.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic

HERE, ELSEWHERE = 1, 99


def grow(cluster, *topics, version=3, validate_only=False):
    """Topics are (name, count) or (name, count, [brokers of each new partition])."""
    asked = []
    for name, count, *rest in topics:
        assignments = [CreatePartitionsAssignment(brokers) for brokers in rest[0]] if rest else None
        asked.append(CreatePartitionsTopic(name, count, assignments))
    results = cluster.send(CreatePartitionsRequest(asked, 10_000, validate_only), version).results
    return [(result.name, ErrorCode(result.error_code).name) for result in results]


def partitions(cluster, name) -> int:
    request = MetadataRequest([MetadataRequestTopic(name=name)], allow_auto_topic_creation=False)
    (topic,) = cluster.send(request, 9).topics
    return len(topic.partitions)


@pytest.fixture(autouse=True)
def topic(cluster):
    return cluster.create("orders", partitions=2)


@pytest.mark.parametrize("version", range(4))
def test_a_topic_gets_more_partitions(cluster, version):
    cluster.produce("orders", 1)
    assert grow(cluster, ("orders", 4), version=version) == [("orders", "NONE")]
    assert partitions(cluster, "orders") == 4
    assert [cluster.end_offset("orders", partition) for partition in (0, 3)] == [1, 0]


@pytest.mark.parametrize("count", [2, 1, 0, -1])
def test_a_topic_can_only_grow(cluster, count):
    assert grow(cluster, ("orders", count)) == [("orders", "INVALID_PARTITIONS")]
    assert partitions(cluster, "orders") == 2


@pytest.mark.parametrize(
    ("count", "assignments", "code"),
    [
        (3, [[HERE]], "NONE"),
        (4, [[HERE]], "INVALID_REPLICA_ASSIGNMENT"),
        (3, [[HERE], [HERE]], "INVALID_REPLICA_ASSIGNMENT"),
        (3, [], "INVALID_REPLICA_ASSIGNMENT"),
        (3, [[]], "INVALID_REPLICA_ASSIGNMENT"),
        (3, [[ELSEWHERE]], "INVALID_REPLICA_ASSIGNMENT"),
        (3, [[HERE, HERE]], "INVALID_REPLICA_ASSIGNMENT"),
    ],
)
def test_new_partitions_may_be_assigned_to_this_broker_one_by_one(cluster, count, assignments, code):
    assert grow(cluster, ("orders", count, assignments)) == [("orders", code)]
    assert partitions(cluster, "orders") == (count if code == "NONE" else 2)


@pytest.mark.parametrize("name", ["missing", "bad name", ""])
def test_a_topic_that_is_not_there_does_not_grow(cluster, name):
    assert grow(cluster, (name, 3)) == [(name, "UNKNOWN_TOPIC_OR_PARTITION")]


def test_a_topic_that_is_named_twice_does_not_grow_and_is_answered_once(cluster):
    assert grow(cluster, ("orders", 3), ("orders", 4)) == [("orders", "INVALID_REQUEST")]
    assert partitions(cluster, "orders") == 2


def test_a_request_may_ask_whether_it_could_be_done(cluster):
    assert sorted(grow(cluster, ("orders", 4), ("missing", 4), validate_only=True)) == [
        ("missing", "UNKNOWN_TOPIC_OR_PARTITION"),
        ("orders", "NONE"),
    ]
    assert partitions(cluster, "orders") == 2


def test_each_topic_is_answered_for_itself(cluster):
    cluster.create("payments")
    assert sorted(grow(cluster, ("orders", 1), ("payments", 5))) == [
        ("orders", "INVALID_PARTITIONS"),
        ("payments", "NONE"),
    ]
    assert partitions(cluster, "payments") == 5


def test_new_partitions_survive_a_restart(cluster, settings):
    grow(cluster, ("orders", 4))
    cluster.broker = cluster.start(settings)
    assert partitions(cluster, "orders") == 4


def test_growth_whose_client_goes_away_is_done_all_the_same(cluster, monkeypatch):
    stored = Pending()
    monkeypatch.setattr(cluster.catalog, "grow_topic", lambda *_, **__: stored)
    cluster.send(CreatePartitionsRequest([CreatePartitionsTopic("orders", 4, None)]), 3).abandon()
    stored.resolve(None)
    assert partitions(cluster, "orders") == 4
