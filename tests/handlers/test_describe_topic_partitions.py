from __future__ import annotations

import pytest

from kbroker.protocol.errors import ErrorCode
from kbroker.protocol.messages.describe_topic_partitions import (
    Cursor,
    DescribeTopicPartitionsRequest,
    TopicRequest,
)

FIRST, SECOND = "orders", "payments"


@pytest.fixture(autouse=True)
def topics(cluster):
    return {FIRST: cluster.create(FIRST, partitions=3), SECOND: cluster.create(SECOND, partitions=2)}


def ask(cluster, *names, limit=2000, cursor=None):
    wanted = [TopicRequest(name) for name in names]
    return cluster.send(DescribeTopicPartitionsRequest(wanted, limit, cursor and Cursor(*cursor)), 0)


def page(cluster, *names, **options):
    """Topic -> partitions, and where the next page begins."""
    answer = ask(cluster, *names, **options)
    shown = {topic.name: [each.partition_index for each in topic.partitions] for topic in answer.topics}
    cursor = answer.next_cursor
    return shown, cursor and (cursor.topic_name, cursor.partition_index)


def test_topics_come_sorted_by_name_with_all_their_partitions(cluster):
    assert page(cluster, SECOND, FIRST) == ({FIRST: [0, 1, 2], SECOND: [0, 1]}, None)
    assert list(page(cluster, SECOND, FIRST)[0]) == [FIRST, SECOND]


def test_without_names_all_topics_are_described(cluster):
    assert page(cluster) == ({FIRST: [0, 1, 2], SECOND: [0, 1]}, None)


def test_a_partition_is_led_by_this_broker_and_has_no_other_replica(cluster, topics):
    (topic,) = ask(cluster, SECOND).topics
    assert (topic.topic_id, topic.is_internal, topic.error_code) == (topics[SECOND].topic_id, False, 0)
    partition = topic.partitions[1]
    assert (partition.leader_id, partition.leader_epoch) == (1, 0)
    assert (partition.replica_nodes, partition.isr_nodes, partition.offline_replicas) == ([1], [1], [])
    assert (partition.eligible_leader_replicas, partition.last_known_elr) == ([], [])


def test_a_topic_that_is_not_there_has_an_error_and_no_partitions(cluster):
    answer = ask(cluster, "missing", "bad name")
    assert {topic.name: (topic.error_code, topic.topic_id, topic.partitions) for topic in answer.topics} == {
        "missing": (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, bytes(16), []),
        "bad name": (ErrorCode.INVALID_TOPIC_EXCEPTION, bytes(16), []),
    }


def test_a_page_ends_at_the_limit_and_says_where_the_next_one_begins(cluster):
    both = (FIRST, SECOND)
    assert page(cluster, *both, limit=2) == ({FIRST: [0, 1]}, (FIRST, 2))
    assert page(cluster, *both, limit=2, cursor=(FIRST, 2)) == ({FIRST: [2], SECOND: [0]}, (SECOND, 1))
    assert page(cluster, *both, limit=2, cursor=(SECOND, 1)) == ({SECOND: [1]}, None)


@pytest.mark.parametrize("limit", [0, -1])
def test_a_page_has_one_partition_at_least(cluster, limit):
    assert page(cluster, FIRST, limit=limit) == ({FIRST: [0]}, (FIRST, 1))


def test_a_cursor_behind_the_last_partition_of_a_topic_shows_none_of_it(cluster):
    assert page(cluster, FIRST, SECOND, cursor=(SECOND, 99)) == ({SECOND: []}, None)


@pytest.mark.parametrize("cursor", [(FIRST, -1), ("orders-2", 0)])
def test_a_cursor_that_points_nowhere_is_refused(cluster, cursor):
    answer = ask(cluster, FIRST, SECOND, cursor=cursor)
    assert {topic.error_code for topic in answer.topics} == {ErrorCode.INVALID_REQUEST}


class TestWithALimitOfTheBroker:
    @pytest.fixture
    def settings(self):
        return {"node.id": "1", "max.request.partition.size.limit": "2"}

    def test_a_page_is_no_longer_than_that(self, cluster):
        assert page(cluster, FIRST, limit=3) == ({FIRST: [0, 1]}, (FIRST, 2))
