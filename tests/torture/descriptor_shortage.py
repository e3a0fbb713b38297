"""File descriptors run out, again and again, under real producers and a real consumer: all must get on.

A shortage is more connections than the server may have, or a limit that is lowered under the running server
below what it has open. `python -m tests.torture.descriptor_shortage --cycles 200` for long runs.
"""

from __future__ import annotations

import argparse
import contextlib
import random
import resource
import socket
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import NamedTuple

from confluent_kafka import Consumer

from kbroker.protocol.errors import ErrorCode
from tests.support.raw_client import Closed, RawClient
from tests.support.raw_topics import create, produce
from tests.support.server_process import ServerProcess
from tests.torture.kill_cycles import PARTITIONS, TOPIC, Load, Outcome, create_topic, judge, let_pass, read

DESCRIPTORS = 256
IN_EXCESS = 300
OTHER_TOPIC = "many"
OTHER_PARTITIONS = 50


class Survived(NamedTuple):
    records: Outcome
    unread: int  # acknowledged, and not seen by the consumer
    refusing: int  # partitions that take no records when all is over
    fenced: int
    tracebacks: int

    @property
    def ok(self) -> bool:
        return self.records.ok and not any(self[1:])


class Reader(threading.Thread):
    """A consumer of a group, reading from the first record on."""

    def __init__(self, bootstrap: str) -> None:
        super().__init__(daemon=True)
        self.seen: dict[int, set[int]] = {partition: set() for partition in range(PARTITIONS)}
        self._over = threading.Event()
        self._consumer = Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": "reader",
                "auto.offset.reset": "earliest",
                "reconnect.backoff.ms": 10,
                "reconnect.backoff.max.ms": 50,
                "log_level": 0,
            }
        )
        self._consumer.subscribe([TOPIC])

    def run(self) -> None:
        while not self._over.is_set():
            for message in self._consumer.consume(5000, 0.1):
                value = message.value()
                if message.error() is None and value is not None:
                    self.seen[message.partition() or 0].add(int(value.split(b":", 2)[1]))
        self._consumer.close()

    def unread(self, loads: list[Load]) -> int:
        return sum(len(load.acknowledged - self.seen[load.partition]) for load in loads)

    def stop(self, loads: list[Load], seconds: float = 60) -> int:
        """Once it has seen all, or after this time; how many it has not."""
        deadline = time.monotonic() + seconds
        while (unread := self.unread(loads)) and time.monotonic() < deadline:
            time.sleep(0.05)
        self._over.set()
        self.join(60)
        return unread


def run(cycles: int, *, data: Path, seed: int = 0, arguments: tuple[str, ...] = ()) -> Survived:
    chance = random.Random(seed)
    with ServerProcess("--data", str(data), *arguments, descriptors=DESCRIPTORS) as server:
        create_topic(server.bootstrap)
        with server.client() as client:
            create(client, OTHER_TOPIC, OTHER_PARTITIONS, segment_bytes="1048576")
        # librdkafka gives every record of a refused batch a pause of its own, and gives the producer up where
        # this tears the batch apart; pauses of 1 ms do not differ.
        pauses = {"retry_backoff_ms": 1, "retry_backoff_max_ms": 1}
        loads = [Load(server.bootstrap, partition, True, **pauses) for partition in range(PARTITIONS)]
        reader = Reader(server.bootstrap)
        for thread in (*loads, reader):
            thread.start()
        for _ in range(cycles):
            let_pass(loads, chance)
            shortage = chance.choice((_too_many_connections, _lowered_limit))
            shortage(server, chance)
        let_pass(loads, chance)
        for load in loads:
            load.stop()
        unread = reader.stop(loads)
        found = {load.partition: read(server.bootstrap, load.partition) for load in loads}
        with server.client() as client:
            taken = [produce(client, OTHER_TOPIC, each, b"value") for each in range(OTHER_PARTITIONS)]
        log = server.log()
    return Survived(
        judge(loads, found, True, cycles),
        unread,
        sum(code is not ErrorCode.NONE for code in taken),
        log.count("is fenced"),
        log.count("Traceback"),
    )


def _too_many_connections(server: ServerProcess, chance: random.Random) -> None:
    """Some of which are closed at once, and some of which come and go."""
    sockets: list[socket.socket] = []
    try:
        for _ in range(IN_EXCESS):
            sockets.append(socket.create_connection(server.address, timeout=20))
            if chance.random() < 0.1:
                sockets.pop(chance.randrange(len(sockets))).close()
        with contextlib.suppress(Closed, OSError), server.client() as client:
            _write_anywhere(client, chance)
    finally:
        for each in sockets:
            each.close()


def _lowered_limit(server: ServerProcess, chance: random.Random) -> None:
    """Nothing more can be opened, whoever wants to."""
    limits = resource.prlimit(server.pid, resource.RLIMIT_NOFILE)
    with contextlib.suppress(Closed, OSError), server.client() as client:
        _write_anywhere(client, chance)
        resource.prlimit(server.pid, resource.RLIMIT_NOFILE, (8, limits[1]))
        try:
            _write_anywhere(client, chance)
            time.sleep(chance.random() * 0.1)
        finally:
            resource.prlimit(server.pid, resource.RLIMIT_NOFILE, limits)


def _write_anywhere(client: RawClient, chance: random.Random) -> None:
    """Whatever comes of it: partitions that were not used for long need their files opened."""
    for _ in range(10):
        code = produce(client, OTHER_TOPIC, chance.randrange(OTHER_PARTITIONS), bytes(10_000))
        assert code is ErrorCode.NONE or code.retriable, code


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cycles", type=int, default=100)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    given = parser.parse_args()
    ok = True
    for arguments in ((), ("--fsync",)):
        with tempfile.TemporaryDirectory() as directory:
            survived = run(given.cycles, data=Path(directory) / "data", seed=given.seed, arguments=arguments)
        ok = ok and survived.ok
        print(f"{' '.join(arguments)} seed={given.seed}: {survived}")  # noqa: T201
    return 0 if ok else 1


if __name__ == "__main__":
    sys.exit(main())
