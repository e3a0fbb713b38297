"""Metadata: which looks at a topic create it."""

from __future__ import annotations

import pytest

from kbroker.catalog.rows import DeletedTopicRow
from kbroker.pending import Pending
from kbroker.protocol.errors import ErrorCode
from kbroker.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from kbroker.protocol.messages.delete_topics import DeleteTopicsRequest
from kbroker.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from tests.handlers.conftest import Cluster

NONE, UNKNOWN = ErrorCode.NONE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


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
