from __future__ import annotations

import pytest

from kbroker.catalog.rows import DeletedTopicRow
from kbroker.pending import Pending
from kbroker.protocol.errors import ErrorCode
from kbroker.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from kbroker.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic

UNKNOWN_ID, NO_ID = b"nobody knows me!", bytes(16)


def by_name(version, *names):
    if version >= 6:
        return DeleteTopicsRequest([DeleteTopicState(name) for name in names], timeout_ms=10_000)
    return DeleteTopicsRequest(topic_names=list(names), timeout_ms=10_000)


def delete(cluster, version, *names):
    """Topic name -> error code."""
    answer = cluster.send(by_name(version, *names), version)
    return {each.name: each.error_code for each in answer.responses}


def delete_states(cluster, *states):
    request = DeleteTopicsRequest([DeleteTopicState(*state) for state in states], timeout_ms=10_000)
    return [(each.name, each.topic_id, each.error_code) for each in cluster.send(request, 6).responses]


def exists(cluster, name) -> bool:
    request = MetadataRequest([MetadataRequestTopic(name=name)], allow_auto_topic_creation=False)
    (topic,) = cluster.send(request, 9).topics
    return topic.error_code == ErrorCode.NONE


@pytest.mark.parametrize("version", range(1, 7))
def test_topics_are_deleted_by_name(cluster, version):
    cluster.create("orders")
    cluster.create("payments")
    assert delete(cluster, version, "orders", "missing", "bad name", "") == {
        "orders": ErrorCode.NONE,
        "missing": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        "bad name": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        "": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }
    assert (exists(cluster, "orders"), exists(cluster, "payments")) == (False, True)


def test_version_0_deletes_too(cluster):
    cluster.create("orders")
    assert delete(cluster, 0, "orders") == {"orders": ErrorCode.NONE}


def test_topics_are_deleted_by_id_from_version_6_on(cluster):
    topic_id = cluster.create("orders").topic_id
    assert set(delete_states(cluster, (None, topic_id), (None, UNKNOWN_ID))) == {
        ("orders", topic_id, ErrorCode.NONE),
        (None, UNKNOWN_ID, ErrorCode.UNKNOWN_TOPIC_ID),
    }
    assert not exists(cluster, "orders")


def test_a_topic_is_named_by_its_name_or_by_its_id_and_not_by_both(cluster):
    topic_id = cluster.create("orders").topic_id
    assert delete_states(cluster, ("orders", topic_id)) == [("orders", topic_id, ErrorCode.INVALID_REQUEST)]
    assert delete_states(cluster, (None, NO_ID)) == [(None, NO_ID, ErrorCode.INVALID_REQUEST)]
    assert exists(cluster, "orders")


def test_a_topic_that_is_named_twice_is_not_deleted(cluster):
    topic_id = cluster.create("orders").topic_id
    ((name, _, code),) = delete_states(cluster, ("orders",), ("orders",))
    assert (name, code) == ("orders", ErrorCode.INVALID_REQUEST)
    codes = {code for _, _, code in delete_states(cluster, ("orders",), (None, topic_id))}
    assert codes == {ErrorCode.INVALID_REQUEST}
    assert exists(cluster, "orders")


def test_a_refusal_has_its_reason_from_version_5_on(cluster):
    for version in range(1, 7):
        (answer,) = cluster.send(by_name(version, "missing"), version).responses
        assert (answer.error_message is not None) is (version >= 5)


def test_records_go_with_their_topic(cluster):
    cluster.create("orders")
    cluster.produce("orders", 1, 2, 3)
    delete(cluster, 6, "orders")
    cluster.create("orders")
    assert cluster.end_offset("orders") == 0


class TestWhereDeletionIsDisabled:
    @pytest.fixture
    def settings(self):
        return {"node.id": "1", "delete.topic.enable": "false"}

    @pytest.mark.parametrize("version", range(1, 7))
    def test_no_topic_is_deleted(self, cluster, version):
        cluster.create("orders")
        disabled = ErrorCode.TOPIC_DELETION_DISABLED if version >= 3 else ErrorCode.INVALID_REQUEST
        assert delete(cluster, version, "orders", "missing") == {"orders": disabled, "missing": disabled}
        assert exists(cluster, "orders")


def test_a_deletion_whose_client_goes_away_is_done_all_the_same(cluster, monkeypatch):
    topic = cluster.create("orders")
    stored = Pending()
    monkeypatch.setattr(cluster.catalog, "delete_topic", lambda *_: stored)
    cluster.send(by_name(6, "orders"), 6).abandon()
    stored.resolve(DeletedTopicRow(topic.topic_id, topic.name, topic.partitions))
    assert not exists(cluster, "orders")


def test_a_deletion_that_cannot_be_stored_is_refused_and_the_topic_stays(cluster, monkeypatch):
    cluster.create("orders")
    stored = Pending()
    monkeypatch.setattr(cluster.catalog, "delete_topic", lambda *_: stored)
    answer = cluster.send(by_name(6, "orders"), 6)
    stored.fail(OSError("no room"))
    assert [each.error_code for each in answer.result().responses] == [ErrorCode.UNKNOWN_SERVER_ERROR]
    assert exists(cluster, "orders")
