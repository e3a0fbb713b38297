"""aiokafka clients that are stopped when the test's event loop ends."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from typing import Any, TypeVar

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, ConsumerRecord, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewTopic

T = TypeVar("T")


class Clients:
    """Open while the test runs: `admin`, `await producer(…)`, `await consumer(topic, …)`, …"""

    admin: AIOKafkaAdminClient

    def __init__(self, bootstrap: str, topic: str) -> None:
        self._bootstrap = bootstrap
        self._topic = topic
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> Clients:
        self.admin = AIOKafkaAdminClient(bootstrap_servers=self._bootstrap)
        await self.admin.start()
        self._stack.push_async_callback(self.admin.close)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stack.aclose()

    async def producer(self, **configs: Any) -> AIOKafkaProducer:
        client = AIOKafkaProducer(bootstrap_servers=self._bootstrap, **configs)
        await client.start()
        self._stack.push_async_callback(client.stop)
        return client

    async def consumer(self, topic: str, partitions: int = 1, **configs: Any) -> AIOKafkaConsumer:
        """Assigned, at the beginning, in no group."""
        configs = {"auto_offset_reset": "earliest", "fetch_max_wait_ms": 100, **configs}
        client = AIOKafkaConsumer(bootstrap_servers=self._bootstrap, **configs)
        client.assign([TopicPartition(topic, number) for number in range(partitions)])
        await client.start()
        self._stack.push_async_callback(client.stop)
        return client

    async def new_topic(self, partitions: int = 1, **configs: str) -> str:
        """Creates this test's topic (configs with _ for .), returns its name."""
        settings = {name.replace("_", "."): value for name, value in configs.items()}
        response = await self.admin.create_topics(
            [NewTopic(self._topic, partitions, 1, topic_configs=settings)]
        )
        assert [error[1] for error in response.topic_errors] == [0], response
        # Apache Kafka answers a moment before the topic is in the metadata.
        await eventually(self.admin.list_topics, lambda names: self._topic in names)
        return self._topic


async def take(consumer: AIOKafkaConsumer, count: int, seconds: float = 30) -> list[ConsumerRecord]:
    """The next `count` records."""
    async with asyncio.timeout(seconds):
        return [await consumer.getone() for _ in range(count)]


async def eventually(question: Callable[[], Awaitable[T]], answer: Callable[[T], bool]) -> None:
    """Ask until the answer is right."""
    async with asyncio.timeout(20):
        while not answer(await question()):  # noqa: ASYNC110 (the broker sends no event)
            await asyncio.sleep(0.02)
