from __future__ import annotations

import pytest

from kbroker.coordinators.groups.offsets.manager import CommitRequest, NewOffset
from kbroker.protocol.errors import ErrorCode
from kbroker.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)

from .committed_offsets import HAS_ONE, UNKNOWN_ID, commit, fetched


@pytest.fixture(autouse=True)
def topic(cluster):
    return cluster.create("orders", partitions=2)


@pytest.mark.parametrize("version", range(8))
def test_offsets_of_one_group_are_fetched(cluster, version):
    commit(cluster, 9, "orders")
    request = OffsetFetchRequest("g", [OffsetFetchRequestTopic("orders", [0, 1])])
    response = cluster.send(request, version)
    assert response.error_code == ErrorCode.NONE
    assert fetched(response.topics[0].partitions) == HAS_ONE


@pytest.mark.parametrize("version", range(2, 8))
def test_all_offsets_of_one_group_are_fetched(cluster, version):
    commit(cluster, 9, "orders")
    response = cluster.send(OffsetFetchRequest("g", None), version)
    assert [(topic.name, fetched(topic.partitions)) for topic in response.topics] == [("orders", HAS_ONE[:1])]


@pytest.mark.parametrize("version", [8, 9])
def test_offsets_of_many_groups_are_fetched(cluster, version):
    commit(cluster, 9, "orders")
    groups = [
        OffsetFetchRequestGroup("g", topics=[OffsetFetchRequestTopics("orders", partition_indexes=[0, 1])]),
        OffsetFetchRequestGroup(
            "missing", topics=[OffsetFetchRequestTopics("orders", partition_indexes=[0])]
        ),
        OffsetFetchRequestGroup("g", topics=None),
    ]
    response = cluster.send(OffsetFetchRequest(groups=groups), version)
    results = [[fetched(topic.partitions) for topic in group.topics] for group in response.groups]
    assert results == [[HAS_ONE], [[(0, -1, "", 0)]], [HAS_ONE[:1]]]


def test_offsets_are_fetched_by_id_from_version_10_on(cluster, topic):
    commit(cluster, 9, "orders")
    asked = [
        OffsetFetchRequestTopics(topic_id=each, partition_indexes=[0])
        for each in (topic.topic_id, UNKNOWN_ID)
    ]
    groups = [OffsetFetchRequestGroup("g", topics=asked), OffsetFetchRequestGroup("g", topics=None)]
    response = cluster.send(OffsetFetchRequest(groups=groups), 10)
    named, every = response.groups
    assert [(each.topic_id, fetched(each.partitions)) for each in named.topics] == [
        (topic.topic_id, HAS_ONE[:1]),
        (UNKNOWN_ID, [(0, -1, "", ErrorCode.UNKNOWN_TOPIC_ID)]),
    ]
    assert [(each.topic_id, fetched(each.partitions)) for each in every.topics] == [
        (topic.topic_id, HAS_ONE[:1])
    ]


def open_transaction(cluster):
    request = CommitRequest("g", [NewOffset("orders", 0, 50)])
    cluster.broker.groups.offsets.commit_in_transaction(7, request, cluster.now_ms)


@pytest.mark.parametrize("version", [7, 8])
def test_a_stable_fetch_hears_of_an_open_transaction(cluster, version):
    open_transaction(cluster)
    asked = [OffsetFetchRequestTopic("orders", [0])]
    request = OffsetFetchRequest("g", asked, require_stable=True)
    if version >= 8:
        topics = [OffsetFetchRequestTopics("orders", partition_indexes=[0])]
        request = OffsetFetchRequest(
            groups=[OffsetFetchRequestGroup("g", topics=topics)], require_stable=True
        )
    response = cluster.send(request, version)
    topics = response.groups[0].topics if version >= 8 else response.topics
    assert fetched(topics[0].partitions) == [(0, -1, "", ErrorCode.UNSTABLE_OFFSET_COMMIT)]


def test_offsets_go_with_a_deleted_topic(cluster, topic):
    commit(cluster, 9, "orders")
    cluster.broker.topics.delete(topic)
    cluster.create("orders")
    fetch = OffsetFetchRequest("g", [OffsetFetchRequestTopic("orders", [0])])
    assert fetched(cluster.send(fetch, 5).topics[0].partitions) == [(0, -1, "", 0)]


def test_offsets_survive_a_restart(cluster, settings):
    commit(cluster, 9, "orders")
    cluster.broker = cluster.start(settings)
    fetch = OffsetFetchRequest("g", [OffsetFetchRequestTopic("orders", [0, 1])])
    assert fetched(cluster.send(fetch, 5).topics[0].partitions) == HAS_ONE
