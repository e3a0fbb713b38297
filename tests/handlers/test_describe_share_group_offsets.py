from __future__ import annotations

import pytest

from kbroker.coordinators.shares.state import RecordState, Run, ShareState, ShareStateChange
from kbroker.coordinators.shares.store import ShareKey
from kbroker.protocol.errors import ErrorCode
from kbroker.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from kbroker.protocol.messages.describe_share_group_offsets import DescribeShareGroupOffsetsRequest
from kbroker.storage.memory import MemoryDirectory
from tests.support.late_logs import LateDirectory

from .share_group_offsets import alter, beat, describe, positions, switch_off


@pytest.fixture(autouse=True)
def topic(cluster):
    topic = cluster.create("t", partitions=2)
    cluster.produce("t", *range(1000, 1010))
    return topic


@pytest.mark.parametrize("logs", [MemoryDirectory, LateDirectory], indirect=True)
def test_the_lag_is_what_is_left_to_do(cluster, topic):
    alter(cluster, "g", ("t", {0: 3, 1: 0}))
    group = describe(cluster, "g")
    assert (group.group_id, group.error_code) == ("g", ErrorCode.NONE)
    assert group.topics[0].topic_id == topic.topic_id
    assert positions(cluster, "g") == {("t", 0): (3, 7), ("t", 1): (0, 0)}
    done = (Run(3, 4, RecordState.ACKNOWLEDGED, 1), Run(6, 6, RecordState.ARCHIVED, 5))
    tried = Run(7, 9, RecordState.AVAILABLE, 2)
    state = ShareState(3, (*done, tried))
    cluster.broker.share_states.attach(ShareKey("g", topic.topic_id, 0), lambda: state)
    assert positions(cluster, "g", {"t": [0]}) == {("t", 0): (3, 4)}


def test_of_what_is_not_decided_there_is_no_lag(cluster):
    beat(cluster, "g", "m", 0, "t")
    assert positions(cluster, "g") == {("t", 0): (-1, -1), ("t", 1): (-1, -1)}


def test_what_was_acknowledged_counts_after_a_restart(cluster, topic, settings):
    key = ShareKey("g", topic.topic_id, 0)
    alter(cluster, "g", ("t", {0: 0}))
    acknowledged = Run(2, 3, RecordState.ACKNOWLEDGED, 1)
    cluster.broker.share_states.write({key: ShareStateChange(1, (acknowledged,))}).result()
    cluster.broker = cluster.start(settings)
    assert positions(cluster, "g") == {("t", 0): (1, 7)}


def test_what_is_not_known_is_no_error(cluster, topic):
    alter(cluster, "g", ("t", {0: 3}))
    nothing = (-1, -1)
    assert positions(cluster, "g", {"t": [1, 0, 7], "no": [0]}) == {
        ("t", 1): nothing,
        ("t", 0): (3, 7),
        ("t", 7): nothing,
        ("no", 0): nothing,
    }
    known, unknown = describe(cluster, "g", {"t": [], "no": []}).topics
    assert (known.topic_id, unknown.topic_id) == (topic.topic_id, bytes(16))
    assert positions(cluster, "missing", {"t": [0]}) == {("t", 0): nothing}


@pytest.mark.parametrize("version", [0, 1])
def test_a_group_that_has_no_offsets_has_no_topics(cluster, version):
    for group_id in ("missing", ""):
        group = describe(cluster, group_id, None, version)
        assert (group.error_code, group.topics) == (ErrorCode.NONE, [])
    assert cluster.send(DescribeShareGroupOffsetsRequest([]), version).groups == []


def test_a_topic_that_is_deleted_takes_its_offsets_along(cluster, topic):
    alter(cluster, "g", ("t", {0: 3}))
    cluster.send(DeleteTopicsRequest(topics=[DeleteTopicState("t")], timeout_ms=1000), 6)
    cluster.create("t", partitions=2)
    assert positions(cluster, "g") == {}
    assert positions(cluster, "g", {"t": [0]}) == {("t", 0): (-1, -1)}
    assert cluster.broker.share_states.initialized("g") == set()


def test_while_the_feature_is_off_nothing_is_told(cluster):
    switch_off(cluster)
    assert describe(cluster, "g").error_code == ErrorCode.UNSUPPORTED_VERSION
