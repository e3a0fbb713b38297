from __future__ import annotations

import pytest

from kbroker.protocol.errors import ErrorCode

from .share_group_offsets import alter, beat, delete, positions, switch_off


@pytest.fixture(autouse=True)
def topic(cluster):
    cluster.create("u")
    return cluster.create("t", partitions=2)


def test_all_partitions_of_a_topic_are_forgotten(cluster, topic):
    alter(cluster, "g", ("t", {0: 3, 1: 4}), ("u", {0: 5}))
    answer = delete(cluster, "g", "t", "t")
    assert answer.error_code == ErrorCode.NONE
    assert [(each.topic_name, each.topic_id, each.error_code) for each in answer.responses] == [
        ("t", topic.topic_id, ErrorCode.NONE)
    ]
    assert positions(cluster, "g") == {("u", 0): (5, -5)}
    assert "g" in cluster.broker.groups.groups


def test_topics_of_which_nothing_is_known_are_refused_one_by_one(cluster):
    alter(cluster, "g", ("t", {0: 3}))
    answer = delete(cluster, "g", "u", "no", "t")
    assert [(each.topic_name, each.error_code) for each in answer.responses] == [
        ("u", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ("no", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ("t", ErrorCode.NONE),
    ]
    assert [each.topic_id for each in answer.responses[:2]] == [bytes(16), bytes(16)]


def test_a_group_with_members_keeps_its_offsets(cluster):
    beat(cluster, "g", "m", 0, "t")
    for topics in ["t"], []:
        answer = delete(cluster, "g", *topics)
        assert (answer.error_code, answer.responses) == (ErrorCode.NON_EMPTY_GROUP, [])
    assert positions(cluster, "g") == {("t", 0): (-1, -1), ("t", 1): (-1, -1)}


def test_who_joins_after_a_deletion_gets_partitions_that_begin_anew(cluster):
    alter(cluster, "g", ("t", {0: 3}))
    delete(cluster, "g", "t")
    assert positions(cluster, "g") == {}
    beat(cluster, "g", "m", 0, "t")
    assert positions(cluster, "g") == {("t", 0): (-1, -1), ("t", 1): (-1, -1)}


def test_only_share_groups_have_such_offsets(cluster):
    cluster.broker.groups.get_or_create_simple("classic", cluster.now_ms)
    for group_id, code in (
        ("missing", ErrorCode.GROUP_ID_NOT_FOUND),
        ("classic", ErrorCode.GROUP_ID_NOT_FOUND),
        ("", ErrorCode.INVALID_GROUP_ID),
    ):
        answer = delete(cluster, group_id, "t")
        assert (answer.error_code, answer.responses) == (code, [])
        assert answer.error_message


def test_while_the_feature_is_off_nothing_is_deleted(cluster):
    switch_off(cluster)
    assert delete(cluster, "g", "t").error_code == ErrorCode.UNSUPPORTED_VERSION
