"""Consumer groups with kafka-python: sharing, taking over, coming back, administration."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from typing import Any

import pytest
from kafka import ConsumerRebalanceListener, KafkaConsumer, TopicPartition
from kafka.structs import OffsetAndMetadata

from compat.harness.brokers import Server
from compat.harness.waiting import eventually


@pytest.fixture
def group(unique: Callable[[str], str]) -> str:
    return unique("group")


@pytest.fixture
def member(kafka_server: Server, clients: ExitStack, topic: str, group: str) -> Callable[..., KafkaConsumer]:
    """member(listener=None, **configs): a consumer that subscribes to the test's topic in its group.

    It knows the topic's partitions before it joins. kafka-python 3.0.12 joins at once, and a leader that sees
    the partitions only later joins again, because need_rejoin() finds _assignment_snapshot and
    _metadata_snapshot different; rejoin_needed is not set. If that poll() ends before the SyncGroup is
    answered, _perform_assignment() has made the snapshots equal, the next poll() finds nothing to do, and
    nobody awaits _join_task: the assignment is lost and no heartbeat is sent any more. So with every broker.
    """

    def start(listener: Any = None, **configs: Any) -> KafkaConsumer:
        configs = {
            "group_id": group,
            "auto_offset_reset": "earliest",
            "enable_auto_commit": False,
            "heartbeat_interval_ms": 200,
            "fetch_max_wait_ms": 100,
            **configs,
        }
        consumer = KafkaConsumer(bootstrap_servers=kafka_server.bootstrap, **configs)
        clients.enter_context(closing(consumer))
        consumer.subscribe([topic], listener=listener)
        assert consumer.partitions_for_topic(topic)
        return consumer

    return start


def settle(consumers: Sequence[KafkaConsumer], partitions: int, seconds: float = 30) -> list[set[int]]:
    """Poll until the consumers own all partitions, each one some; returns what each owns.

    Each polls in a thread of its own, one poll() after the other, as members in different processes do.
    kafka-python 3.0.12 keeps a join that outlives a poll() for the next one, but join_group_async() starts a
    new one if it finds _join_task done: a join that ends while nobody polls is lost, and the group rebalances
    again. Consumers that take turns in one thread can lose every join to the other's turn for many seconds.
    """
    settled = threading.Event()

    def poll(consumer: KafkaConsumer) -> None:
        while not settled.is_set():
            consumer.poll(timeout_ms=50)

    def owned() -> list[set[int]]:
        return [{each.partition for each in consumer.assignment()} for consumer in consumers]

    def complete(found: list[set[int]]) -> bool:
        return all(found) and sorted(p for each in found for p in each) == list(range(partitions))

    with ThreadPoolExecutor(len(consumers)) as threads:
        polling = [threads.submit(poll, consumer) for consumer in consumers]
        try:
            found = eventually(owned, complete, seconds)
        finally:
            settled.set()
    for each in polling:
        each.result()
    return found


class Counter(ConsumerRebalanceListener):
    def __init__(self) -> None:
        self.rebalances = 0

    def on_partitions_revoked(self, revoked: Any) -> None:
        pass

    def on_partitions_assigned(self, assigned: Any) -> None:
        self.rebalances += 1


def test_members_share_the_partitions_and_take_over(member, new_topic):
    new_topic(partitions=4)
    first = member()
    settle([first], 4)
    second = member()
    assert sorted(len(owned) for owned in settle([first, second], 4)) == [2, 2]
    first.close()
    assert settle([second], 4) == [{0, 1, 2, 3}]


def test_a_group_goes_on_where_it_committed(member, new_topic, producer):
    topic = new_topic()
    producing = producer()
    for number in range(10):
        producing.send(topic, str(number).encode())
    producing.flush()
    first = member(max_poll_records=1)
    taken: list[bytes] = []
    while len(taken) < 4:
        for records in first.poll(timeout_ms=500).values():
            taken += [record.value for record in records]
    first.commit()
    first.close()
    second = member()
    while len(taken) < 10:
        for records in second.poll(timeout_ms=500).values():
            taken += [record.value for record in records]
    assert taken == [str(number).encode() for number in range(10)]
    assert second.committed(TopicPartition(topic, 0)) == 4


def test_a_static_member_comes_back_without_a_rebalance(member, new_topic):
    new_topic(partitions=4)
    counter = Counter()
    first = member(counter, group_instance_id="one")
    settle([first], 4)
    second = member(group_instance_id="two")
    _, owned = settle([first, second], 4)
    before = counter.rebalances
    second.close()
    again = member(group_instance_id="two")
    assert settle([first, again], 4)[1] == owned
    assert counter.rebalances == before


def test_an_administrator_sees_and_changes_groups(member, new_topic, admin, group):
    topic = new_topic(partitions=2)
    consumer = member()
    settle([consumer], 2)
    partition = TopicPartition(topic, 0)
    listed = {each["group_id"]: each for each in admin.list_groups()}
    assert listed[group]["protocol_type"] == "consumer"
    described = admin.describe_groups([group])[group]
    assert described["group_state"] == "Stable"
    assert [each["client_id"] for each in described["members"]] == [consumer.config["client_id"]]
    (error,) = admin.delete_group_offsets(group, [partition]).values()
    assert error.__name__ == "GroupSubscribedToTopicError"
    consumer.close()
    altered = admin.alter_group_offsets(group, {partition: OffsetAndMetadata(7, "", -1)})
    assert [error.__name__ for error in altered.values()] == ["NoError"]
    assert admin.list_group_offsets({group: None})[group][partition].offset == 7
    admin.delete_group_offsets(group, [partition])
    assert admin.delete_groups([group]) == {group: "OK"}
    assert group not in {each["group_id"] for each in admin.list_groups()}


def test_a_group_with_members_is_not_deleted(member, new_topic, admin, group):
    new_topic()
    settle([member()], 1)
    assert "NonEmptyGroup" in str(admin.delete_groups([group]))
