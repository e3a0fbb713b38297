"""kill -9, again and again, under real producers; afterwards every acknowledged record must be there.

`python -m tests.torture.kill_cycles --cycles 200` for long runs; the tests run some 30 cycles. Producers do
not send as fast as they can: a kill finds more in a log of many segments than in one of many records.
"""

from __future__ import annotations

import argparse
import itertools
import random
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import NamedTuple

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from tests.support.server_process import ServerProcess

TOPIC = "torture"
PARTITIONS = 4


class Outcome(NamedTuple):
    acknowledged: int
    lost: int
    duplicated: int
    unknown: int  # there, though never sent
    out_of_order: int  # only counted with idempotence, which promises the order
    unacknowledged_but_there: int
    cycles: int

    @property
    def ok(self) -> bool:
        return not (self.lost or self.duplicated or self.unknown or self.out_of_order)


class Load(threading.Thread):
    """One producer that sends numbered records to one partition until told to stop."""

    def __init__(self, bootstrap: str, partition: int, idempotent: bool, **more: int) -> None:
        """`more`: settings of the producer, with _ for the dots."""
        super().__init__(daemon=True)
        self.partition = partition
        self.sent = 0
        self.acknowledged: set[int] = set()
        self._over = threading.Event()
        self._producer = Producer(
            {
                "bootstrap.servers": bootstrap,
                "acks": "all",
                "enable.idempotence": idempotent,
                # Without idempotence a retry could double a record: then each is sent once only.
                **({} if idempotent else {"retries": 0, "message.send.max.retries": 0}),
                "linger.ms": 1,
                "queue.buffering.max.messages": 1000,
                "reconnect.backoff.ms": 10,
                "reconnect.backoff.max.ms": 50,
                "message.timeout.ms": 60_000 if idempotent else 2_000,
                "log_level": 0,
                **{name.replace("_", "."): value for name, value in more.items()},
            }
        )

    def run(self) -> None:
        while not self._over.is_set():
            number = self.sent
            try:
                self._producer.produce(
                    TOPIC,
                    value=f"{self.partition}:{number}:".encode() + padding(number),
                    partition=self.partition,
                    on_delivery=lambda error, _, number=number: self._delivered(error, number),
                )
                self.sent += 1
            except BufferError:
                self._producer.poll(0.01)
            self._producer.poll(0 if number % 5 else 0.001)
        self._producer.flush(90)

    def stop(self) -> None:
        self._over.set()
        self.join(120)

    def _delivered(self, error: KafkaError | None, number: int) -> None:
        if error is None:
            self.acknowledged.add(number)


def padding(number: int) -> bytes:
    """What fills a record: 2 KB in the middle, so that segments are soon full."""
    return bytes(number * 8 % 4000)


def run(
    cycles: int, *, idempotent: bool, data: Path, seed: int = 0, arguments: tuple[str, ...] = ()
) -> Outcome:
    chance = random.Random(seed)
    with ServerProcess("--data", str(data), *arguments) as server:
        create_topic(server.bootstrap)
        loads = [Load(server.bootstrap, partition, idempotent) for partition in range(PARTITIONS)]
        for load in loads:
            load.start()
        for _ in range(cycles):
            let_pass(loads, chance)
            server.kill()
            server.start()
        for load in loads:
            load.stop()
        found = {load.partition: read(server.bootstrap, load.partition) for load in loads}
    return judge(loads, found, idempotent, cycles)


def let_pass(loads: list[Load], chance: random.Random) -> None:
    """Wait until something more was acknowledged, then a random moment longer."""
    before = sum(len(load.acknowledged) for load in loads)
    deadline = time.monotonic() + 30
    while sum(len(load.acknowledged) for load in loads) == before:
        assert time.monotonic() < deadline, "nothing is acknowledged any more"
        time.sleep(0.001)
    time.sleep(chance.random() * 0.1)


def create_topic(bootstrap: str) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    # Small segments, so that rolls, indexes and snapshots are hit by the kills too.
    config = {"segment.bytes": "1048576", "index.interval.bytes": "1024"}
    (created,) = admin.create_topics([NewTopic(TOPIC, PARTITIONS, 1, config=config)]).values()
    created.result(30)


def read(bootstrap: str, partition: int) -> list[int]:
    """The numbers in a partition, in their order."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "judge",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "auto.offset.reset": "error",
            "check.crcs": True,
        }
    )
    try:
        consumer.assign([TopicPartition(TOPIC, partition, 0)])
        numbers: list[int] = []
        while True:
            message: Message | None = consumer.poll(30)
            assert message is not None, "the log cannot be read to its end"
            error = message.error()
            if error is not None:
                if error.code() == KafkaError._PARTITION_EOF:
                    return numbers
                raise KafkaException(error)
            value = message.value()
            assert value is not None
            of, number, rest = value.split(b":", 2)
            assert int(of) == partition
            assert rest == padding(int(number))
            numbers.append(int(number))
    finally:
        consumer.close()


def judge(loads: list[Load], found: dict[int, list[int]], idempotent: bool, cycles: int) -> Outcome:
    acknowledged = lost = duplicated = unknown = out_of_order = extra = 0
    for load in loads:
        numbers = found[load.partition]
        there = set(numbers)
        acknowledged += len(load.acknowledged)
        lost += len(load.acknowledged - there)
        duplicated += len(numbers) - len(there)
        unknown += sum(1 for number in there if number >= load.sent)
        extra += len(there - load.acknowledged)
        if idempotent:
            out_of_order += sum(1 for a, b in itertools.pairwise(numbers) if a >= b)
    return Outcome(acknowledged, lost, duplicated, unknown, out_of_order, extra, cycles)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cycles", type=int, default=100)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    given = parser.parse_args()
    ok = True
    for idempotent in (False, True):
        for arguments in ((), ("--fsync",)):
            with tempfile.TemporaryDirectory() as directory:
                outcome = run(
                    given.cycles,
                    idempotent=idempotent,
                    data=Path(directory) / "data",
                    seed=given.seed,
                    arguments=arguments,
                )
            ok = ok and outcome.ok
            print(f"idempotent={idempotent} {' '.join(arguments)} seed={given.seed}: {outcome}")  # noqa: T201
    return 0 if ok else 1


if __name__ == "__main__":
    sys.exit(main())
