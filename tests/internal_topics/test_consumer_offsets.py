from __future__ import annotations

import pytest

from kbroker.internal_topics.topic import IDLE_MS
from kbroker.pending import Pending
from kbroker.protocol.coordinator_records.classic_groups import GroupMetadataKey, GroupMetadataValue
from kbroker.protocol.coordinator_records.consumer_groups import (
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMetadataKey,
    ConsumerGroupTargetAssignmentMemberKey,
    ConsumerGroupTargetAssignmentMetadataKey,
)
from kbroker.protocol.coordinator_records.offsets import OffsetCommitKey
from kbroker.protocol.errors import ErrorCode
from kbroker.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from kbroker.protocol.messages.delete_groups import DeleteGroupsRequest
from kbroker.protocol.messages.share_group_heartbeat import ShareGroupHeartbeatRequest
from kbroker.transactions.offsets_partition import offsets_partition
from tests.handlers.classic_members import joined, sync
from tests.handlers.committed_offsets import commit
from tests.handlers.test_streams_group_heartbeat import heartbeat as join_streams_group
from tests.handlers.test_streams_group_heartbeat import stateful
from tests.transactions.broker_support import TransactionalClient

from .reader import LATEST, OFFSETS, Reader, fetch, offset_at

MEMBER = "m" * 22


@pytest.fixture(autouse=True)
def topic(cluster):
    return cluster.create("t", partitions=2)


def group_keys(records):
    return {type(record.key).__name__ for record in records if not isinstance(record.key, OffsetCommitKey)}


def heartbeat(cluster, member_epoch=0, **fields):
    if member_epoch == 0:
        fields = {
            "rebalance_timeout_ms": 60_000,
            "subscribed_topic_names": ["t"],
            "topic_partitions": [],
            **fields,
        }
    request = ConsumerGroupHeartbeatRequest("g", MEMBER, member_epoch, **fields)
    response = cluster.send(request, 1)
    assert response.error_code == ErrorCode.NONE
    return response


# offsets


def test_what_was_committed_before_is_read(cluster, topic):
    assert commit(cluster, 9, "t") == [0]
    (read,) = Reader(cluster).read()
    assert (read.key.group, read.key.topic, read.key.partition) == ("g", "t", 0)
    assert (read.value.offset, read.value.metadata, read.value.leader_epoch) == (42, "m", -1)
    assert read.value.commit_timestamp == cluster.now_ms
    assert read.value.topic_id == topic.topic_id


def test_an_offset_stands_in_the_partition_of_its_group(cluster):
    commit(cluster, 9, "t", group_id="g")
    partition = offsets_partition("g", 50)
    assert offset_at(cluster, OFFSETS, partition, LATEST) == offset_at(cluster, OFFSETS, partition, -2) + 1
    assert fetch(cluster, OFFSETS, partition, offset_at(cluster, OFFSETS, partition, -2)).records


def test_commits_are_followed(cluster):
    commit(cluster, 9, "t")
    reader = Reader(cluster)
    assert len(reader.read()) == 1
    assert reader.read() == []
    commit(cluster, 9, "t")
    commit(cluster, 9, "t", group_id="other")
    assert sorted(read.key.group for read in reader.read()) == ["g", "other"]


def test_a_reader_from_the_end_gets_what_comes_and_nothing_else(cluster):
    commit(cluster, 9, "t")
    reader = Reader(cluster, timestamp=LATEST)
    assert reader.read() == []
    commit(cluster, 9, "t")
    assert len(reader.read()) == 1


def test_a_fetch_waits_for_the_next_commit(cluster):
    partition = offsets_partition("g", 50)
    commit(cluster, 9, "t")
    end = offset_at(cluster, OFFSETS, partition, LATEST)
    waiting = fetch(cluster, OFFSETS, partition, end, max_wait_ms=60_000, min_bytes=1)
    assert isinstance(waiting, Pending)
    assert not waiting.done
    commit(cluster, 9, "t")
    assert waiting.result().responses[0].partitions[0].records


def test_a_commit_that_expires_by_itself_says_when(cluster):
    commit(cluster, 2, "t", retention_time_ms=5_000)
    (read,) = Reader(cluster).read()
    assert read.value.expire_timestamp == cluster.now_ms + 5_000


def test_a_deleted_group_leaves_tombstones(cluster):
    commit(cluster, 9, "t")
    reader = Reader(cluster)
    reader.read()
    cluster.send(DeleteGroupsRequest(["g"]), 2)
    assert [read.value for read in reader.read()] == [None]
    assert [read.value for read in Reader(cluster).read()] == [reader_value(42), None]


def reader_value(offset):
    class Value:
        def __eq__(self, other):
            return other is not None and other.offset == offset

        __hash__ = None

    return Value()


def test_offsets_of_a_deleted_topic_leave_tombstones(cluster, topic):
    commit(cluster, 9, "t")
    reader = Reader(cluster)
    reader.read()
    cluster.broker.topics.delete(topic).result()
    assert [(read.key.topic, read.value) for read in reader.read()] == [("t", None)]


def test_offsets_of_a_transaction_come_when_it_commits(cluster):
    client = TransactionalClient(cluster)
    client.init()
    reader = Reader(cluster)
    client.add_offsets("g")
    client.commit_offset("g", "t", 7)
    assert reader.read() == []
    client.end(commit=True)
    assert [read.value.offset for read in reader.read()] == [7]


def test_offsets_of_an_aborted_transaction_do_not_come(cluster):
    client = TransactionalClient(cluster)
    client.init()
    reader = Reader(cluster)
    client.add_offsets("g")
    client.commit_offset("g", "t", 7)
    client.end(commit=False)
    assert reader.read() == []


# groups


def test_a_classic_group_is_read_with_its_members(cluster):
    member = joined(cluster, 9)
    sync(cluster, 5, member.member_id, member.generation_id)
    (read,) = Reader(cluster).read()
    assert read.key == GroupMetadataKey("g")
    assert isinstance(read.value, GroupMetadataValue)
    assert (read.value.protocol_type, read.value.protocol, read.value.generation) == ("consumer", "range", 1)
    (described,) = read.value.members
    assert read.value.leader == described.member_id == member.member_id
    assert (described.subscription, described.assignment) == (b"metadata", b"assignment")
    assert (described.session_timeout, described.rebalance_timeout) == (10_000, 20_000)


def test_a_classic_group_is_followed(cluster):
    commit(cluster, 9, "t", group_id="other")
    reader = Reader(cluster)
    reader.read()
    member = joined(cluster, 9)
    sync(cluster, 5, member.member_id, member.generation_id)
    generations = [read.value.generation for read in reader.read()]
    assert generations == [0, 1]  # as Kafka: when it is made, and when it is stable


def test_a_consumer_group_is_read_with_its_members(cluster, topic):
    epoch = heartbeat(cluster).member_epoch
    by_key = {type(read.key): read for read in Reader(cluster).read()}
    assert by_key[ConsumerGroupMetadataKey].value.epoch == epoch
    assert by_key[ConsumerGroupTargetAssignmentMetadataKey].value.assignment_epoch == epoch
    member = by_key[ConsumerGroupMemberMetadataKey]
    assert (member.key.group_id, member.key.member_id) == ("g", MEMBER)
    assert member.value.subscribed_topic_names == ["t"]
    assert member.value.classic_member_metadata is None
    (target,) = by_key[ConsumerGroupTargetAssignmentMemberKey].value.topic_partitions
    assert (target.topic_id, target.partitions) == (topic.topic_id, [0, 1])
    current = by_key[ConsumerGroupCurrentMemberAssignmentKey].value
    assert (current.member_epoch, current.state) == (epoch, 0)
    (held,) = current.assigned_partitions
    assert (held.partitions, held.assignment_epochs) == ([0, 1], [epoch, epoch])


def test_only_what_changes_of_a_consumer_group_is_written(cluster):
    heartbeat(cluster)
    reader = Reader(cluster)
    reader.read()
    assert heartbeat(cluster, -1).member_epoch == -1
    records = reader.read()
    assert group_keys(read for read in records if read.value is None) == {
        "ConsumerGroupCurrentMemberAssignmentKey",
        "ConsumerGroupTargetAssignmentMemberKey",
        "ConsumerGroupMemberMetadataKey",
    }
    assert "ConsumerGroupMetadataKey" in group_keys(read for read in records if read.value is not None)


def test_a_group_of_another_type_takes_the_place_of_the_old_one(cluster):
    heartbeat(cluster)
    heartbeat(cluster, -1)
    reader = Reader(cluster)
    reader.read()
    member = joined(cluster, 9)
    sync(cluster, 5, member.member_id, member.generation_id)
    records = reader.read()
    gone = group_keys(read for read in records if read.value is None)
    assert gone == {"ConsumerGroupMetadataKey", "ConsumerGroupTargetAssignmentMetadataKey"}
    assert group_keys(read for read in records if read.value is not None) == {"GroupMetadataKey"}


def test_a_share_group_is_read(cluster):
    request = ShareGroupHeartbeatRequest("g", MEMBER, 0, subscribed_topic_names=["t"])
    assert cluster.send(request, 1).error_code == 0
    assert group_keys(Reader(cluster).read()) == {
        "ShareGroupMetadataKey",
        "ShareGroupMemberMetadataKey",
        "ShareGroupTargetAssignmentMetadataKey",
        "ShareGroupTargetAssignmentMemberKey",
        "ShareGroupCurrentMemberAssignmentKey",
    }


def test_a_streams_group_is_read(cluster):
    cluster.create("in", partitions=2)
    assert join_streams_group(cluster, topology=stateful()).error_code == 0
    by_key = {type(read.key).__name__: read for read in Reader(cluster).read()}
    assert by_key.keys() == {
        "StreamsGroupMetadataKey",
        "StreamsGroupTopologyKey",
        "StreamsGroupMemberMetadataKey",
        "StreamsGroupTargetAssignmentMetadataKey",
        "StreamsGroupTargetAssignmentMemberKey",
        "StreamsGroupCurrentMemberAssignmentKey",
    }
    (subtopology,) = by_key["StreamsGroupTopologyKey"].value.subtopologies
    assert (subtopology.source_topics, subtopology.state_changelog_topics[0].name) == (
        ["in"],
        "app-store-changelog",
    )
    assert by_key["StreamsGroupMemberMetadataKey"].value.process_id == "p"


# lives


def test_nothing_is_there_until_somebody_reads(cluster):
    commit(cluster, 9, "t")
    log = cluster.broker.find_log(OFFSETS, offsets_partition("g", 50))
    assert log.log_start_offset == log.log_end_offset
    offset_at(cluster, OFFSETS, 0, LATEST)
    assert log.log_end_offset == log.log_start_offset + 1


def test_what_nobody_reads_any_more_is_dropped_and_made_anew(cluster):
    commit(cluster, 9, "t")
    reader = Reader(cluster)
    (before,) = reader.read()
    store = cluster.broker.groups.environment.store
    cluster.now_ms += IDLE_MS
    for callback in list(cluster.scheduler.waiting):
        callback()
    assert cluster.broker.groups.environment.store is not store
    partition = offsets_partition("g", 50)
    log = cluster.broker.find_log(OFFSETS, partition)
    assert log.size_bytes == 0
    answer = fetch(cluster, OFFSETS, partition, reader.positions[partition])
    assert answer.error_code == ErrorCode.OFFSET_OUT_OF_RANGE
    (again,) = Reader(cluster).read()
    assert (again.key, again.value) == (before.key, before.value)
    assert again.offset > before.offset


def test_a_reader_of_an_earlier_life_is_out_of_range_after_a_restart(cluster):
    commit(cluster, 9, "t")
    reader = Reader(cluster)
    reader.read()
    cluster.now_ms += 1
    cluster.broker = cluster.start({"node.id": "1"})
    assert cluster.broker.topics.get(OFFSETS) is not None
    partition = offsets_partition("g", 50)
    answer = fetch(cluster, OFFSETS, partition, reader.positions[partition])
    assert answer.error_code == ErrorCode.OFFSET_OUT_OF_RANGE
    assert [read.value.offset for read in Reader(cluster).read()] == [42]


def test_what_is_overwritten_goes_away_while_somebody_reads(cluster):
    commit(cluster, 9, "t")
    reader = Reader(cluster)
    partition = offsets_partition("g", 50)
    log = cluster.broker.find_log(OFFSETS, partition)
    for _ in range(30_000):
        commit(cluster, 9, "t")
        if log.last_compaction is not None:
            break
    assert log.last_compaction is not None
    assert log.last_compaction.records_removed > 1000
    assert log.size_bytes < 3 << 20
    offsets = [read.offset for read in reader.read()]
    assert offsets == sorted(offsets)
    assert len(offsets) < log.log_end_offset - log.log_start_offset
    assert offsets[-1] == log.log_end_offset - 1
