"""Consumer groups with aiokafka."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
from aiokafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor

from compat.harness.brokers import Server

from .clients import Clients, take


@pytest.fixture
def group(unique: Callable[[str], str]) -> str:
    return unique("group")


@pytest.fixture
def member(kafka_server: Server, clients: Clients, topic: str, group: str) -> Callable[..., Any]:
    """await member(**configs): a consumer that subscribes to the test's topic in its group"""

    async def start(**configs: Any) -> AIOKafkaConsumer:
        configs = {
            "group_id": group,
            "auto_offset_reset": "earliest",
            "enable_auto_commit": False,
            "heartbeat_interval_ms": 200,
            "fetch_max_wait_ms": 100,
            **configs,
        }
        consumer = AIOKafkaConsumer(topic, bootstrap_servers=kafka_server.bootstrap, **configs)
        await consumer.start()
        return consumer

    return start


async def settle(consumers: list[AIOKafkaConsumer], partitions: int) -> list[set[int]]:
    """Wait until the consumers own all partitions, each one some; returns what each owns."""
    async with asyncio.timeout(30):
        while True:
            owned = [{each.partition for each in consumer.assignment()} for consumer in consumers]
            if all(owned) and sorted(p for each in owned for p in each) == list(range(partitions)):
                return owned
            await asyncio.sleep(0.02)


@pytest.mark.parametrize("assignor", [RoundRobinPartitionAssignor, StickyPartitionAssignor])
async def test_members_share_the_partitions_and_take_over(clients, member, assignor):
    await clients.new_topic(partitions=4)
    first, second = [await member(partition_assignment_strategy=[assignor]) for _ in range(2)]
    assert sorted(len(owned) for owned in await settle([first, second], 4)) == [2, 2]
    await first.stop()
    assert await settle([second], 4) == [{0, 1, 2, 3}]
    await second.stop()


async def test_a_group_goes_on_where_it_committed(clients, member):
    topic = await clients.new_topic()
    producer = await clients.producer()
    for number in range(6):
        await producer.send_and_wait(topic, str(number).encode())
    first = await member()
    taken = await take(first, 3)
    await first.commit({TopicPartition(topic, 0): taken[-1].offset + 1})
    await first.stop()
    second = await member()
    taken += await take(second, 3)
    assert [record.value for record in taken] == [str(number).encode() for number in range(6)]
    assert await second.committed(TopicPartition(topic, 0)) == 3
    await second.stop()


async def test_an_administrator_sees_groups(clients, member, group):
    topic = await clients.new_topic()
    consumer = await member()
    await settle([consumer], 1)
    await consumer.commit({TopicPartition(topic, 0): 7})
    assert (group, "consumer") in [each[:2] for each in await clients.admin.list_consumer_groups()]
    offsets = await clients.admin.list_consumer_group_offsets(group)
    assert {each: found.offset for each, found in offsets.items()} == {TopicPartition(topic, 0): 7}
    await consumer.stop()
