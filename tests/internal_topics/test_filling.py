"""While a topic is filled others go on: nothing is missed, and what is newer stands behind what is older."""

from __future__ import annotations

import random
from typing import Any

import pytest

from kbroker.coordinators.groups.offsets.commit_grouping import LINGER_MS
from kbroker.coordinators.groups.store import TopicPartition
from kbroker.internal_topics.consumer_offsets import GroupSource
from kbroker.internal_topics.group_records import offset_key
from kbroker.pending import Pending
from kbroker.protocol.coordinator_records import decode_value
from kbroker.protocol.coordinator_records.offsets import OffsetCommitValue
from kbroker.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from kbroker.protocol.messages.delete_groups import DeleteGroupsRequest
from kbroker.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)

GROUPS, PARTITIONS = 20, 120


def commit(cluster, group, offset, partitions=range(PARTITIONS)):
    asked = [OffsetCommitRequestPartition(partition, offset) for partition in partitions]
    request = OffsetCommitRequest(group, topics=[OffsetCommitRequestTopic(name="t", partitions=asked)])
    answer = cluster.send(request, 9)
    if isinstance(answer, Pending):  # held back for those of others
        cluster.now_ms += LINGER_MS
        cluster.broker.groups.tick(cluster.now_ms)
        answer = answer.result()
    assert {partition.error_code for partition in answer.topics[0].partitions} == {0}


@pytest.mark.parametrize("seed", range(5))
def test_what_changes_meanwhile_stands_behind_what_was_there(cluster, seed):
    chance = random.Random(seed)
    cluster.create("t", PARTITIONS)
    groups = [f"g{number}" for number in range(GROUPS)]
    for group in groups:
        commit(cluster, group, 1)
    source = GroupSource(lambda: cluster.broker.groups)
    standing: dict[bytes, bytes | None] = {}

    def write(owner: str, records: Any) -> None:
        standing.update(records)

    source.follow(write)
    turns = 0
    for turns, _ in enumerate(source.all_records(write)):
        group = chance.choice(groups)
        if chance.random() < 0.2:
            cluster.send(DeleteGroupsRequest([group]), 2)
        else:
            commit(cluster, group, turns + 2, [chance.randrange(PARTITIONS)])
    assert turns > GROUPS
    source.unfollow()
    offsets = cluster.broker.groups.offsets
    expected = {
        offset_key(group, partition): committed.offset
        for group in groups
        for partition, committed in offsets.committed(group).items()
    }
    told = {
        key: decode_value(OffsetCommitValue, value).offset
        for key, value in standing.items()
        if value is not None and key[:2] == b"\0\1"
    }
    assert told == expected
    assert offset_key("g0", TopicPartition("t", 0)) in standing


def test_a_group_that_changes_meanwhile_stands_as_it_is(cluster):
    cluster.create("t", 1)
    members = [f"{number:022}" for number in range(120)]
    epochs = {}

    def heartbeat(member, epoch, **fields):
        request = ConsumerGroupHeartbeatRequest("g", member, epoch, **fields)
        epochs[member] = cluster.send(request, 1).member_epoch

    for member in members:
        heartbeat(member, 0, rebalance_timeout_ms=1000, subscribed_topic_names=["t"], topic_partitions=[])
    source = GroupSource(lambda: cluster.broker.groups)
    standing: dict[bytes, bytes | None] = {}

    def write(owner: str, records: Any) -> None:
        standing.update(records)

    source.follow(write)
    for turn, _ in enumerate(source.all_records(write)):
        heartbeat(members[-1 - turn], -1)
    during = {key: value for key, value in standing.items() if value is not None}
    source.unfollow()
    again = GroupSource(lambda: cluster.broker.groups)
    standing.clear()
    again.follow(write)
    for _ in again.all_records(write):
        pass
    again.unfollow()
    assert during == standing


def test_nobody_is_told_after_the_end(cluster):
    cluster.create("t", 1)
    commit(cluster, "g", 1, [0])
    store = cluster.broker.groups.environment.store
    told: list[Any] = []
    source = GroupSource(lambda: cluster.broker.groups)
    source.follow(lambda owner, records: told.append(records))
    source.unfollow()
    commit(cluster, "g", 2, [0])
    assert told == []
    assert cluster.broker.groups.environment.store is store
