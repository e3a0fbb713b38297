"""Classic consumer groups with confluent-kafka: every assignor, cooperative rebalancing, static members."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from typing import Any

import pytest
from confluent_kafka import Consumer, ConsumerGroupState, ConsumerGroupTopicPartitions, TopicPartition

from compat.harness.brokers import Server

from .members import QUIET
from .records import deliver, take


@pytest.fixture
def group(unique: Callable[[str], str]) -> str:
    return unique("group")


class Member:
    """A consumer that notes which partitions it is given and which are taken from it."""

    def __init__(self, settings: dict[str, Any], topic: str) -> None:
        self.consumer = Consumer(settings)
        self.assigned: list[set[int]] = []
        self.revoked: list[set[int]] = []
        self._cooperative = settings["partition.assignment.strategy"] == "cooperative-sticky"
        self.consumer.subscribe([topic], on_assign=self._on_assign, on_revoke=self._on_revoke)

    def _on_assign(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        self.assigned.append({each.partition for each in partitions})

    def _on_revoke(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        self.revoked.append({each.partition for each in partitions})

    @property
    def owned(self) -> set[int]:
        return {each.partition for each in self.consumer.assignment()}

    def close(self) -> None:
        self.consumer.close()


@pytest.fixture
def member(kafka_server: Server, group: str, topic: str) -> Iterator[Callable[..., Member]]:
    """member(**configs with _ for .): in the test's group, subscribed to its topic"""
    with ExitStack() as stack:

        def start(**configs: Any) -> Member:
            settings: dict[str, Any] = {
                "bootstrap.servers": kafka_server.bootstrap,
                "group.id": group,
                "group.protocol": "classic",
                "partition.assignment.strategy": "range",
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                "heartbeat.interval.ms": 200,
                "fetch.wait.max.ms": 100,
                **QUIET,
            }
            settings.update({name.replace("_", "."): value for name, value in configs.items()})
            return stack.enter_context(closing(Member(settings, topic)))

        yield start


def settle(members: list[Member], partitions: int, seconds: float = 30) -> list[set[int]]:
    """Poll until the members own all partitions, each one some; returns what each owns."""
    deadline = time.monotonic() + seconds
    while True:
        for member in members:
            member.consumer.poll(0.02)
        owned = [member.owned for member in members]
        if all(owned) and sorted(p for each in owned for p in each) == list(range(partitions)):
            return owned
        assert time.monotonic() < deadline, f"still {owned} after {seconds:g} s"


@pytest.mark.parametrize("assignor", ["range", "roundrobin", "cooperative-sticky"])
def test_members_share_the_partitions_and_take_over(member, new_topic, assignor):
    new_topic(partitions=6)
    members = [member(partition_assignment_strategy=assignor) for _ in range(3)]
    assert sorted(len(owned) for owned in settle(members, 6)) == [2, 2, 2]
    members.pop().close()
    assert sorted(len(owned) for owned in settle(members, 6)) == [3, 3]


def test_a_cooperative_rebalance_takes_only_what_moves(member, new_topic):
    new_topic(partitions=6)
    members = [member(partition_assignment_strategy="cooperative-sticky") for _ in range(2)]
    before = settle(members, 6)
    for each in members:
        each.revoked.clear()
    members.append(member(partition_assignment_strategy="cooperative-sticky"))
    after = settle(members, 6)
    for had, has, each in zip(before, after, members, strict=False):
        assert has < had, "nobody gets another's partitions"
        assert set().union(*each.revoked) == had - has, "what stays is never taken"


def test_a_static_member_comes_back_without_a_rebalance(member, new_topic):
    new_topic(partitions=4)
    first, second = (member(group_instance_id=name) for name in ("one", "two"))
    _, owned = settle([first, second], 4)
    first.assigned.clear()
    first.revoked.clear()
    second.close()
    again = member(group_instance_id="two")
    assert settle([first, again], 4)[1] == owned
    assert first.assigned == first.revoked == []


def test_a_group_goes_on_where_it_committed(member, new_topic, producer):
    topic = new_topic()
    producing = producer()
    for number in range(6):
        deliver(producing, topic, value=str(number))
    first = member()
    taken = take(first.consumer, 3)
    first.consumer.commit(taken[-1], asynchronous=False)
    first.close()
    second = member()
    taken += take(second.consumer, 3)
    assert [message.value() for message in taken] == [str(number).encode() for number in range(6)]
    assert [each.offset for each in second.consumer.committed([TopicPartition(topic, 0)])] == [3]


def test_an_administrator_sees_and_changes_groups(member, new_topic, admin, group):
    topic = new_topic(partitions=2)
    consumer = member()
    settle([consumer], 2)
    listed = {each.group_id: each for each in admin.list_consumer_groups().result().valid}
    assert listed[group].state == ConsumerGroupState.STABLE
    described = admin.describe_consumer_groups([group])[group].result()
    assert (described.state, described.partition_assignor) == (ConsumerGroupState.STABLE, "range")
    (only,) = described.members
    assert {each.partition for each in only.assignment.topic_partitions} == {0, 1}
    consumer.close()
    changed = ConsumerGroupTopicPartitions(group, [TopicPartition(topic, 1, 9)])
    admin.alter_consumer_group_offsets([changed])[group].result()
    asked = ConsumerGroupTopicPartitions(group)
    offsets = admin.list_consumer_group_offsets([asked])[group].result().topic_partitions
    assert [(each.partition, each.offset) for each in offsets] == [(1, 9)]
    admin.delete_consumer_groups([group])[group].result()
    assert group not in {each.group_id for each in admin.list_consumer_groups().result().valid}
