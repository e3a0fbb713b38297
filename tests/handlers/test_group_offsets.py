"""OffsetCommit, OffsetFetch and OffsetDelete at all their versions."""

from __future__ import annotations

import pytest

from kbroker.coordinators.groups.offsets.manager import CommitRequest, NewOffset
from kbroker.protocol.errors import ErrorCode
from kbroker.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kbroker.protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from kbroker.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)

UNKNOWN_ID = b"nobody knows me!"


@pytest.fixture(autouse=True)
def topic(cluster):
    return cluster.create("orders", partitions=2)


def commit(cluster, version, *topics, **fields):
    """Commit partition 0 of each topic, given by name or id; returns the error codes."""
    asked = [
        OffsetCommitRequestTopic(
            **({"topic_id": topic} if version >= 10 else {"name": topic}),
            partitions=[OffsetCommitRequestPartition(0, 42, committed_metadata="m")],
        )
        for topic in topics
    ]
    response = cluster.send(OffsetCommitRequest(fields.pop("group_id", "g"), topics=asked, **fields), version)
    answered = [topic.topic_id if version >= 10 else topic.name for topic in response.topics]
    assert answered == list(topics)
    return [partition.error_code for topic in response.topics for partition in topic.partitions]


def fetched(partitions):
    return [(p.partition_index, p.committed_offset, p.metadata, p.error_code) for p in partitions]


HAS_ONE = [(0, 42, "m", 0), (1, -1, "", 0)]


@pytest.mark.parametrize("version", range(10))
def test_offsets_are_committed_by_name(cluster, version):
    assert commit(cluster, version, "orders", "nothing") == [
        ErrorCode.NONE,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ]
    assert len(cluster.broker.groups.groups) == 1


def test_offsets_are_committed_by_id_from_version_10_on(cluster, topic):
    codes = commit(cluster, 10, topic.topic_id, UNKNOWN_ID)
    assert codes == [ErrorCode.NONE, ErrorCode.UNKNOWN_TOPIC_ID]


def test_the_error_of_the_group_is_that_of_each_partition(cluster):
    codes = commit(cluster, 9, "orders", "nothing", generation_id_or_member_epoch=3, member_id="x")
    assert codes == [ErrorCode.GROUP_ID_NOT_FOUND, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
    codes = commit(cluster, 8, "orders", generation_id_or_member_epoch=3, member_id="x")
    assert codes == [ErrorCode.ILLEGAL_GENERATION]


def test_a_retention_time_is_kept_with_the_commit(cluster):
    commit(cluster, 4, "orders", retention_time_ms=5_000)
    ((stored,),) = [offsets.values() for offsets in cluster.broker.groups.offsets._table._committed.values()]
    assert stored.expire_timestamp_ms == cluster.now_ms + 5_000


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


def test_offsets_are_deleted(cluster):
    commit(cluster, 9, "orders")
    partitions = [OffsetDeleteRequestPartition(0), OffsetDeleteRequestPartition(9)]
    request = OffsetDeleteRequest("g", [OffsetDeleteRequestTopic("orders", partitions)])
    response = cluster.send(request, 0)
    assert [(p.partition_index, p.error_code) for p in response.topics[0].partitions] == [
        (0, ErrorCode.NONE),
        (9, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    ]
    fetch = OffsetFetchRequest("g", [OffsetFetchRequestTopic("orders", [0])])
    assert fetched(cluster.send(fetch, 5).topics[0].partitions) == [(0, -1, "", 0)]


def test_offsets_of_a_missing_group_are_not_deleted(cluster):
    response = cluster.send(OffsetDeleteRequest("missing", []), 0)
    assert (response.error_code, response.topics) == (ErrorCode.GROUP_ID_NOT_FOUND, [])


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
