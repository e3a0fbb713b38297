"""Groups whose members are subscriptions in the process and Kafka's own clients, of both protocols: within
the group every record is delivered once, while members come and go.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

import pytest
from aiokafka import AIOKafkaConsumer
from confluent_kafka import Consumer, KafkaError
from kafka import KafkaConsumer

from kbroker.local import LocalBroker
from tests.local.scenario import eventually, scenario

PARTITIONS = 6
TOPIC, GROUP = "t", "g"


class Member(Protocol):
    got: list[str]

    async def stop(self) -> None: ...


class OurMember:
    def __init__(self, broker: LocalBroker) -> None:
        self.got: list[str] = []
        self._ends = asyncio.Event()
        self._task = asyncio.ensure_future(self._run(broker))

    async def _run(self, broker: LocalBroker) -> None:
        async with broker.subscribe(TOPIC, group=GROUP) as records:
            while not self._ends.is_set():
                self.got += [record.text() for record in await records.poll(7, max_wait_ms=50)]

    async def stop(self) -> None:
        self._ends.set()
        await self._task


class AiokafkaMember:
    def __init__(self, broker: LocalBroker) -> None:
        self.got: list[str] = []
        self._ends = asyncio.Event()
        self._task = asyncio.ensure_future(self._run(broker.bootstrap_servers))

    async def _run(self, bootstrap: str) -> None:
        consumer = AIOKafkaConsumer(
            TOPIC,
            bootstrap_servers=bootstrap,
            group_id=GROUP,
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            heartbeat_interval_ms=200,
            session_timeout_ms=6000,
        )
        await consumer.start()
        try:
            while not self._ends.is_set():
                polled = await consumer.getmany(timeout_ms=50, max_records=7)
                if polled:
                    await consumer.commit()
                self.got += [record.value.decode() for records in polled.values() for record in records]
        finally:
            await consumer.stop()

    async def stop(self) -> None:
        self._ends.set()
        await self._task


class _ThreadMember:
    """A client that blocks, in a thread of its own."""

    def __init__(self, consumer: Any, poll: Callable[[Any], list[str]]) -> None:
        self.got: list[str] = []
        self._failure: BaseException | None = None
        self._ends = threading.Event()
        self._thread = threading.Thread(target=self._run, args=(consumer, poll))
        self._thread.start()

    def _run(self, consumer: Any, poll: Callable[[Any], list[str]]) -> None:
        try:
            while not self._ends.is_set():
                self.got += poll(consumer)
            consumer.close()
        except BaseException as error:
            self._failure = error

    async def stop(self) -> None:
        self._ends.set()
        await asyncio.to_thread(self._thread.join, 50)
        assert self._failure is None, self._failure


def _poll_librdkafka(consumer: Any) -> list[str]:
    message = consumer.poll(0.1)
    if message is None:
        return []
    if message.error():
        assert message.error().code() == KafkaError._PARTITION_EOF, message.error()
        return []
    consumer.commit(message, asynchronous=False)
    return [message.value().decode()]


def _poll_kafka_python(consumer: Any) -> list[str]:
    polled = consumer.poll(100, max_records=7)
    if polled:
        consumer.commit()
    return [record.value.decode() for records in polled.values() for record in records]


async def made(kind: str, broker: LocalBroker) -> Member:
    if kind == "ours":
        return OurMember(broker)
    if kind == "aiokafka":
        return AiokafkaMember(broker)
    bootstrap = broker.bootstrap_servers
    if kind == "kafka-python":

        def connect() -> Any:
            return KafkaConsumer(
                TOPIC,
                bootstrap_servers=bootstrap,
                group_id=GROUP,
                auto_offset_reset="earliest",
                enable_auto_commit=False,
                heartbeat_interval_ms=200,
                session_timeout_ms=6000,
            )

        return _ThreadMember(await asyncio.to_thread(connect), _poll_kafka_python)
    settings: dict[str, Any] = {
        "bootstrap.servers": bootstrap,
        "group.id": GROUP,
        "group.protocol": kind,
        "auto.offset.reset": "earliest",
        "enable.auto.commit": False,
    }
    if kind == "classic":
        settings |= {"session.timeout.ms": 6000, "heartbeat.interval.ms": 200}
    consumer = Consumer(settings)
    consumer.subscribe([TOPIC])
    return _ThreadMember(consumer, _poll_librdkafka)


@pytest.mark.parametrize("other", ["consumer", "classic", "kafka-python", "aiokafka"])
@scenario
async def test_every_record_is_delivered_once_while_members_come_and_go(other: str, tmp_path: Path) -> None:
    configs = {"group.initial.rebalance.delay.ms": 0}
    async with LocalBroker(data=tmp_path / "data", port=0, configs=configs) as broker:
        await broker.create_topic(TOPIC, partitions=PARTITIONS)
        members: dict[str, Member] = {}
        everybody: list[Member] = []
        sent = 0

        async def join(name: str, kind: str) -> None:
            members[name] = await made(kind, broker)
            everybody.append(members[name])

        async def send(count: int) -> None:
            nonlocal sent
            for _ in range(count):
                await broker.publish(TOPIC, str(sent), partition=sent % PARTITIONS)
                sent += 1

        async def shared(*names: str) -> None:
            """Each of them gets something of what comes from now on."""
            before = {name: len(members[name].got) for name in names}
            while not all(len(members[name].got) > before[name] for name in names):
                await send(PARTITIONS)
                await asyncio.sleep(0.02)

        def all_got() -> bool:
            return sum(len(member.got) for member in everybody) >= sent

        try:
            await join("kafka", other)
            await send(50)
            await eventually(all_got)
            await join("ours", "ours")
            await shared("kafka", "ours")
            await join("ours 2", "ours")
            await shared("kafka", "ours", "ours 2")
            await members.pop("ours").stop()
            await shared("kafka", "ours 2")
            await members.pop("kafka").stop()
            await send(50)
            await eventually(all_got)
            await join("kafka 2", other)
            await shared("kafka 2", "ours 2")
            await members.pop("ours 2").stop()
            await send(50)
            await eventually(all_got)
        finally:
            await asyncio.gather(*(member.stop() for member in members.values()))
        got = sorted(int(value) for member in everybody for value in member.got)
        assert got == list(range(sent))
        assert (await broker.lag(GROUP)).total == 0
