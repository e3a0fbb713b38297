"""What a record costs in the process, and by a client over a socket: `python -m benchmarks.local`.

The same records through kbroker.local and, to a `kbroker serve` of its own, through aiokafka and
kafka-python, in turns, all with data on disk. Microseconds are of a record: of the clock, and of the
processors of client and broker together. Each way is a process that starts anew; so the time to its first
record is what a user waits for, with the import of what it needs and, over a socket, the start of the broker.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from benchmarks.compare.brokers import Usage
from kbroker.testing import KafkaBroker

ROUNDS = 3
RECORDS = 5_000
TOGETHER = 100
VALUE = bytes(100)
WAYS = ("kbroker.local", "aiokafka", "kafka-python")


class Client(NamedTuple):
    """Each publishes so many records to the topic, or reads them."""

    publish_one: Callable[[int], Awaitable[None]]
    """One after the other, each acknowledged before the next."""
    publish_many: Callable[[int], Awaitable[None]]
    read: Callable[[int], Awaitable[None]]


@asynccontextmanager
async def in_process(data: Path) -> AsyncIterator[Client]:
    from kbroker.local import LocalBroker, NewRecord

    async with LocalBroker(data=data) as broker:
        await broker.create_topic("t", if_not_exists=True)

        async def publish_one(count: int) -> None:
            for _ in range(count):
                await broker.publish("t", VALUE)

        async def publish_many(count: int) -> None:
            for _ in range(count // TOGETHER):
                await broker.publish_each([NewRecord("t", VALUE)] * TOGETHER)

        async def read(count: int) -> None:
            async with broker.subscribe("t", group=f"g{time.time_ns()}") as records:
                for _ in range(count):
                    await anext(records)

        yield Client(publish_one, publish_many, read)


@asynccontextmanager
async def by_aiokafka(bootstrap: str) -> AsyncIterator[Client]:
    from aiokafka import AIOKafkaConsumer, AIOKafkaProducer

    async with AIOKafkaProducer(bootstrap_servers=bootstrap) as producer:

        async def publish_one(count: int) -> None:
            for _ in range(count):
                await producer.send_and_wait("t", VALUE)

        async def publish_many(count: int) -> None:
            for _ in range(count // TOGETHER):
                sent = [await producer.send("t", VALUE) for _ in range(TOGETHER)]
                await asyncio.gather(*sent)

        async def read(count: int) -> None:
            async with AIOKafkaConsumer(
                "t",
                bootstrap_servers=bootstrap,
                group_id=f"g{time.time_ns()}",
                auto_offset_reset="earliest",
            ) as consumer:
                for _ in range(count):
                    await consumer.getone()

        yield Client(publish_one, publish_many, read)


@asynccontextmanager
async def by_kafka_python(bootstrap: str) -> AsyncIterator[Client]:
    """It blocks; nothing else is on the loop."""
    from kafka import KafkaConsumer, KafkaProducer

    producer = KafkaProducer(bootstrap_servers=bootstrap)

    async def publish_one(count: int) -> None:
        for _ in range(count):
            producer.send("t", VALUE).get(30)

    async def publish_many(count: int) -> None:
        for _ in range(count // TOGETHER):
            for _ in range(TOGETHER):
                producer.send("t", VALUE)
            producer.flush(30)

    async def read(count: int) -> None:
        consumer = KafkaConsumer(
            "t",
            bootstrap_servers=bootstrap,
            group_id=f"g{time.time_ns()}",
            auto_offset_reset="earliest",
        )
        for _ in range(count):
            next(consumer)
        consumer.close()

    yield Client(publish_one, publish_many, read)
    producer.close()


@contextmanager
def client(way: str, directory: Path) -> Iterator[tuple[Any, int | None]]:
    """And the broker's process, if it is another one."""
    if way == "kbroker.local":
        yield in_process(directory), None
        return
    connect = by_aiokafka if way == "aiokafka" else by_kafka_python
    with KafkaBroker(topics=["t"], data=directory) as broker:
        yield connect(broker.bootstrap_servers), broker.pid


async def measured(opening: Any, pid: int | None, started: float, count: int) -> dict[str, float]:
    numbers: dict[str, float] = {}

    def cpu_seconds() -> float:
        return time.process_time() + (0 if pid is None else Usage.of(pid).cpu_seconds)

    async def timed(name: str, done: Awaitable[None], records: int) -> None:
        cpu, clock = cpu_seconds(), time.perf_counter()
        await done
        numbers[f"{name} µs"] = (time.perf_counter() - clock) / records * 1e6
        numbers[f"{name} CPU µs"] = (cpu_seconds() - cpu) / records * 1e6

    async with opening as made:
        await made.publish_one(1)
        await made.read(1)
        numbers["first record ms"] = (time.time() - started) * 1000
        await made.publish_one(max(count // 10, 1))
        await timed("publish", made.publish_one(count), count)
        many = TOGETHER * count // 10
        await timed(f"publish {TOGETHER} together", made.publish_many(many), many)
        await timed("subscribe", made.read(count), count)
    return numbers


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scale", type=float, default=1, help="of the number of records")
    parser.add_argument("--way", choices=WAYS, help=argparse.SUPPRESS)
    parser.add_argument("--started", type=float, help=argparse.SUPPRESS)
    given = parser.parse_args()
    count = max(int(RECORDS * given.scale), TOGETHER)
    if given.way is not None:
        with tempfile.TemporaryDirectory() as data, client(given.way, Path(data)) as (opening, pid):
            print(json.dumps(asyncio.run(measured(opening, pid, given.started, count))))
        return
    found: dict[str, dict[str, list[float]]] = {}
    for _ in range(ROUNDS):
        for way in WAYS:
            command = [sys.executable, "-m", "benchmarks.local", "--scale", str(given.scale), "--way", way]
            done = subprocess.run(
                [*command, "--started", str(time.time())], stdout=subprocess.PIPE, check=True, env=os.environ
            )
            for name, value in json.loads(done.stdout).items():
                found.setdefault(name, {}).setdefault(way, []).append(value)
    print(f"| | {' | '.join(WAYS)} |\n|---|{'---|' * len(WAYS)}")
    for name, values in found.items():
        print(f"| {name} | {' | '.join(f'{median(values[way]):,.1f}' for way in WAYS)} |")


if __name__ == "__main__":
    main()
