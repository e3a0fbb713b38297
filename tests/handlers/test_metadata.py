from __future__ import annotations

from typing import Any

import pytest

from kbroker.catalog.rows import DeletedTopicRow
from kbroker.pending import Pending
from kbroker.protocol.errors import ErrorCode
from kbroker.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from kbroker.protocol.messages.delete_topics import DeleteTopicsRequest
from kbroker.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from tests.handlers.conftest import Cluster

NONE, UNKNOWN = ErrorCode.NONE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
UNKNOWN_ID, NO_ID = b"nobody knows me!", bytes(16)
NOT_ASKED_FOR = -(2**31)


def look(cluster: Cluster, name: str) -> int:
    """The error code of a look that may create the topic."""
    request = MetadataRequest(topics=[MetadataRequestTopic(name=name)], allow_auto_topic_creation=True)
    (topic,) = cluster.send(request, 9).topics
    assert topic.name == name
    code: int = topic.error_code
    return code


def delete(cluster: Cluster, name: str) -> None:
    (deleted,) = cluster.send(DeleteTopicsRequest(topic_names=[name], timeout_ms=1000), 5).responses
    assert deleted.error_code == NONE


def test_a_look_at_a_topic_that_never_was_creates_it(cluster: Cluster) -> None:
    assert look(cluster, "new") == NONE
    assert cluster.broker.topics.get("new") is not None


def test_a_look_at_a_topic_that_was_just_deleted_does_not_bring_it_back(cluster: Cluster) -> None:
    cluster.create("gone")
    delete(cluster, "gone")
    assert [look(cluster, "gone") for _ in range(3)] == [UNKNOWN] * 3
    assert cluster.broker.topics.get("gone") is None
    cluster.now_ms += 999
    assert look(cluster, "gone") == UNKNOWN
    cluster.now_ms += 1
    assert look(cluster, "gone") == NONE


def test_a_topic_that_was_just_deleted_can_be_created_by_who_wants_it(cluster: Cluster) -> None:
    cluster.create("again")
    delete(cluster, "again")
    wanted = CreatableTopic(name="again", num_partitions=1, replication_factor=1)
    (created,) = cluster.send(CreateTopicsRequest(topics=[wanted]), 7).topics
    assert created.error_code == NONE
    assert look(cluster, "again") == NONE


def test_every_deletion_counts_from_its_own_time(cluster: Cluster) -> None:
    cluster.create("a")
    delete(cluster, "a")
    cluster.now_ms += 600
    cluster.create("a")
    delete(cluster, "a")
    cluster.create("b")
    delete(cluster, "b")
    cluster.now_ms += 600
    assert [look(cluster, name) for name in "ab"] == [UNKNOWN] * 2
    cluster.now_ms += 400
    assert [look(cluster, name) for name in "ab"] == [NONE] * 2


@pytest.mark.parametrize("change", ["create", "delete"])
def test_a_topic_whose_creation_or_deletion_is_not_stored_yet_is_unknown(
    cluster: Cluster, change: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    stored: Pending[DeletedTopicRow | None] = Pending()
    if change == "delete":
        topic = cluster.create("t")
    monkeypatch.setattr(cluster.catalog, f"{change}_topic", lambda *_: stored)
    if change == "delete":
        cluster.broker.topics.delete(topic)
    else:
        cluster.broker.topics.create("t", 1, {}, 0)
    assert look(cluster, "t") == UNKNOWN
    stored.resolve(DeletedTopicRow(topic.topic_id, "t", 1) if change == "delete" else None)
    assert look(cluster, "t") == (UNKNOWN if change == "delete" else NONE)


def test_who_goes_away_while_a_topic_is_created_does_not_take_it_from_others(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    stored: Pending[None] = Pending()
    monkeypatch.setattr(cluster.catalog, "create_topic", lambda *_: stored)
    request = MetadataRequest(topics=[MetadataRequestTopic(name="t")], allow_auto_topic_creation=True)
    gone, stays = cluster.send(request, 9), cluster.send(request, 9)
    gone.abandon()
    stored.resolve(None)
    assert [topic.error_code for topic in stays.result().topics] == [NONE]
    assert look(cluster, "t") == NONE


def ask(cluster: Cluster, *topics: MetadataRequestTopic, version: int = 13, **fields: Any) -> Any:
    fields = {"allow_auto_topic_creation": version < 4, **fields}
    return cluster.send(MetadataRequest(topics=list(topics), **fields), version)


def named(name: str) -> MetadataRequestTopic:
    return MetadataRequestTopic(name=name)


@pytest.mark.parametrize("version", range(14))
def test_a_topic_is_described_with_its_partitions_and_their_leader(cluster: Cluster, version: int) -> None:
    topic_id = cluster.create("t", partitions=2).topic_id
    (topic,) = ask(cluster, named("t"), version=version).topics
    assert (topic.error_code, topic.name, topic.is_internal) == (NONE, "t", False)
    assert topic.topic_id == (topic_id if version >= 10 else NO_ID)
    first, second = sorted(topic.partitions, key=lambda each: each.partition_index)
    assert (first.partition_index, second.partition_index) == (0, 1)
    assert (first.error_code, first.leader_id, first.leader_epoch) == (NONE, 1, 0 if version >= 7 else -1)
    assert (first.replica_nodes, first.isr_nodes, first.offline_replicas) == ([1], [1], [])


@pytest.mark.parametrize("version", range(14))
def test_the_one_broker_is_all_brokers(cluster: Cluster, version: int) -> None:
    answer = ask(cluster, version=version)
    (broker,) = answer.brokers
    assert (broker.node_id, broker.host, broker.rack) == (1, "127.0.0.1", None)
    assert answer.controller_id == (1 if version >= 1 else -1)
    assert (answer.cluster_id is not None) is (version >= 2)


def test_all_topics_are_asked_for_by_no_list_and_at_version_0_by_an_empty_one(cluster: Cluster) -> None:
    cluster.create("a")
    cluster.create("b")
    assert {"a", "b"} <= {topic.name for topic in cluster.send(MetadataRequest(topics=None), 1).topics}
    assert {"a", "b"} <= {topic.name for topic in ask(cluster, version=0).topics}
    assert ask(cluster, version=1).topics == []


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("missing", "UNKNOWN_TOPIC_OR_PARTITION"),
        ("bad name", "INVALID_TOPIC_EXCEPTION"),
        ("", "INVALID_TOPIC_EXCEPTION"),
        (".", "INVALID_TOPIC_EXCEPTION"),
        ("x" * 250, "INVALID_TOPIC_EXCEPTION"),
    ],
)
@pytest.mark.parametrize("version", [4, 9, 13])
def test_a_topic_that_is_not_there_has_an_error_and_no_partitions(
    cluster: Cluster, version: int, name: str, code: str
) -> None:
    (topic,) = ask(cluster, named(name), version=version).topics
    assert (ErrorCode(topic.error_code).name, topic.name, topic.partitions) == (code, name, [])


@pytest.mark.parametrize("version", [12, 13])
def test_topics_are_asked_for_by_id_from_version_12_on(cluster: Cluster, version: int) -> None:
    topic_id = cluster.create("t").topic_id
    (known,) = ask(cluster, MetadataRequestTopic(topic_id, None), version=version).topics
    assert (known.error_code, known.name, known.topic_id) == (NONE, "t", topic_id)
    (unknown,) = ask(cluster, MetadataRequestTopic(UNKNOWN_ID, None), version=version).topics
    assert (unknown.error_code, unknown.name) == (ErrorCode.UNKNOWN_TOPIC_ID, None)


def test_a_topic_that_is_named_twice_is_answered_once(cluster: Cluster) -> None:
    cluster.create("t")
    assert [topic.name for topic in ask(cluster, named("t"), named("t"), version=9).topics] == ["t"]


@pytest.mark.parametrize("version", range(8, 14))
def test_what_may_be_done_with_a_topic_is_told_on_demand(cluster: Cluster, version: int) -> None:
    cluster.create("t")
    (silent,) = ask(cluster, named("t"), version=version).topics
    (told,) = ask(cluster, named("t"), version=version, include_topic_authorized_operations=True).topics
    assert silent.topic_authorized_operations == NOT_ASKED_FOR
    assert told.topic_authorized_operations == sum(1 << operation for operation in (3, 4, 5, 6, 7, 8, 10, 11))
