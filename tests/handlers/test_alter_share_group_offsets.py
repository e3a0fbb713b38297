from __future__ import annotations

import pytest

from kbroker.catalog.errors import CatalogFull
from kbroker.coordinators.shares.state import RecordState, Run, ShareState
from kbroker.coordinators.shares.store import ShareKey
from kbroker.pending import Pending
from kbroker.protocol.errors import ErrorCode

from .share_group_offsets import alter, beat, positions, switch_off


@pytest.fixture(autouse=True)
def topic(cluster):
    cluster.create("u")
    return cluster.create("t", partitions=2)


def codes(answer):
    return [
        (topic.topic_name, part.partition_index, part.error_code)
        for topic in answer.responses
        for part in topic.partitions
    ]


def groups(cluster):
    return {group.group_id: (group.type, group.state) for group in cluster.broker.groups.list_groups()}


def test_a_group_that_is_not_there_is_made(cluster, topic):
    answer = alter(cluster, "g", ("t", {0: 3, 1: 0}))
    assert answer.error_code == ErrorCode.NONE
    assert answer.responses[0].topic_id == topic.topic_id
    assert codes(answer) == [("t", 0, ErrorCode.NONE), ("t", 1, ErrorCode.NONE)]
    assert groups(cluster) == {"g": ("share", "Empty")}
    assert positions(cluster, "g") == {("t", 0): (3, -3), ("t", 1): (0, 0)}


def test_what_is_set_is_there_after_a_restart(cluster, settings):
    alter(cluster, "g", ("t", {0: 3}))
    cluster.broker = cluster.start(settings)
    assert groups(cluster) == {"g": ("share", "Empty")}
    assert positions(cluster, "g") == {("t", 0): (3, -3)}


def test_all_that_was_known_of_the_records_is_replaced(cluster, topic):
    key = ShareKey("g", topic.topic_id, 0)
    alter(cluster, "g", ("t", {0: 3}))
    states = cluster.broker.share_states
    states.attach(key, lambda: ShareState(5, (Run(6, 7, RecordState.ACKNOWLEDGED, 1),)))
    told = []
    states.on_replaced = told.append
    alter(cluster, "g", ("t", {0: 1}))
    assert (states.get(key), told) == (ShareState(1), [key])


def test_of_a_partition_that_is_named_twice_the_last_offset_counts(cluster):
    answer = alter(cluster, "g", ("t", {0: 3, 1: 4}), ("t", {0: 1}))
    assert codes(answer) == [("t", 0, 0), ("t", 1, 0), ("t", 0, 0)]
    assert positions(cluster, "g") == {("t", 0): (1, -1), ("t", 1): (4, -4)}


def test_an_offset_below_0_is_decided_by_the_next_fetch(cluster):
    alter(cluster, "g", ("t", {0: 3, 1: 3}))
    alter(cluster, "g", ("t", {0: -1, 1: -5}))
    assert positions(cluster, "g") == {("t", 0): (-1, -1), ("t", 1): (-1, -1)}


def test_topics_and_partitions_that_are_none_are_refused_one_by_one(cluster):
    answer = alter(cluster, "g", ("no", {0: 1}), ("t", {1: 5, 2: 5, -1: 5}))
    assert answer.responses[0].topic_id == bytes(16)
    assert codes(answer) == [
        ("no", 0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ("t", 1, ErrorCode.NONE),
        ("t", 2, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ("t", -1, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    ]
    assert positions(cluster, "g") == {("t", 1): (5, -5)}


def test_without_a_topic_that_exists_no_group_is_made(cluster):
    assert alter(cluster, "g").error_code == ErrorCode.NONE
    assert alter(cluster, "g", ("no", {0: 1})).error_code == ErrorCode.NONE
    assert groups(cluster) == {}
    assert codes(alter(cluster, "g", ("t", {}))) == []
    assert groups(cluster) == {"g": ("share", "Empty")}


def test_a_group_with_members_is_not_altered(cluster):
    beat(cluster, "g", "m", 0, "t")
    for topics in [("t", {0: 3})], [("no", {0: 3})], []:
        answer = alter(cluster, "g", *topics)
        assert (answer.error_code, answer.responses) == (ErrorCode.NON_EMPTY_GROUP, [])
    beat(cluster, "g", "m", -1)
    assert alter(cluster, "g", ("t", {0: 3})).error_code == ErrorCode.NONE
    assert positions(cluster, "g") == {("t", 0): (3, -3), ("t", 1): (-1, -1)}


def test_only_share_groups_are_altered(cluster):
    cluster.broker.groups.get_or_create_simple("classic", cluster.now_ms)
    for group_id, code in ("classic", ErrorCode.GROUP_ID_NOT_FOUND), ("", ErrorCode.INVALID_GROUP_ID):
        answer = alter(cluster, group_id, ("t", {0: 3}))
        assert (answer.error_code, answer.responses) == (code, [])
        assert answer.error_message


def test_a_group_that_somebody_joins_while_it_is_made_is_not_altered(cluster, monkeypatch):
    """Nothing but the group is stored then."""
    share_groups = cluster.broker.groups.share_groups
    create, making = share_groups.create_empty, Pending()

    def create_slowly(*arguments):
        create(*arguments)
        return making

    monkeypatch.setattr(share_groups, "create_empty", create_slowly)
    answer = alter(cluster, "g", ("t", {0: 3}))
    beat(cluster, "g", "m", 0, "t")
    making.resolve(None)
    assert answer.result().error_code == ErrorCode.NON_EMPTY_GROUP
    assert positions(cluster, "g") == {("t", 0): (-1, -1), ("t", 1): (-1, -1)}


def test_on_a_full_disk_the_group_goes_on_where_it_was(cluster, monkeypatch):
    alter(cluster, "g", ("t", {0: 3}))
    failed: Pending[None] = Pending()
    failed.fail(CatalogFull("no room"))
    store = cluster.catalog.share_state_store(cluster.scheduler)
    with monkeypatch.context() as patch:
        patch.setattr(store, "put", lambda states: failed)
        answer = alter(cluster, "g", ("t", {0: 1}))
    assert answer.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert positions(cluster, "g") == {("t", 0): (3, -3)}


def test_while_the_feature_is_off_nothing_is_altered(cluster):
    switch_off(cluster)
    assert alter(cluster, "g", ("t", {0: 3})).error_code == ErrorCode.UNSUPPORTED_VERSION
