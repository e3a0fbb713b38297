"""A small disk is filled, the broker stopped or killed and started without room, topics deleted, and so on.

Producers write all the time, and get what room there is before anybody else does. Whatever was acknowledged
must be there after each start, and deleting a topic must work and make room. For a small disk one has to be
root.
`python -m tests.torture.full_disk --cycles 200` for long runs.
"""

from __future__ import annotations

import argparse
import contextlib
import random
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import NamedTuple

import pytest

from kbroker.protocol.errors import ErrorCode
from tests.support.raw_client import Closed
from tests.support.raw_topics import create, delete, produce, read
from tests.support.server_process import ServerProcess, eventually
from tests.support.small_disk import SmallDisk, small_disk

DISK_BYTES = 24 << 20
PARTITIONS = 3
LIVE_TOPICS = 3
_REFUSALS = 20  # of one producer, until the disk counts as full
_CONFIGS = {"segment_bytes": str(1 << 20), "index_interval_bytes": "1024", "file_delete_delay_ms": "1"}


class Survived(NamedTuple):
    cycles: int
    acknowledged: int
    lost: int
    doubled: int
    not_deleted: int  # topics that could not be deleted without room
    fenced: int
    tracebacks: int

    @property
    def ok(self) -> bool:
        return self.acknowledged > 0 and not any(self[2:])


class Writer(threading.Thread):
    """Writes to one partition of a topic, room or not, until it is told to stop or the server goes."""

    def __init__(self, server: ServerProcess, topic: str, partition: int, seed: int) -> None:
        super().__init__(daemon=True)
        self.topic, self.partition = topic, partition
        self.acknowledged: list[bytes] = []
        self.unknown: bytes | None = None  # sent, and never answered
        self.refusals = 0
        self.error: ErrorCode | None = None  # that it should not have got
        self._server = server
        self._chance = random.Random(seed)
        self._over = threading.Event()

    def run(self) -> None:
        with contextlib.suppress(Closed, OSError), self._server.client() as client:
            for number in range(1_000_000):
                if self._over.is_set():
                    return
                value = b"%d:" % number + self._chance.randbytes(self._chance.choice((10, 1000, 30_000)))
                self.unknown = value
                code = produce(client, self.topic, self.partition, value)
                self.unknown = None
                if code is ErrorCode.NONE:
                    self.acknowledged.append(value)
                    continue
                self.refusals += 1
                if code is not ErrorCode.KAFKA_STORAGE_ERROR:
                    self.error = code
                    return

    def stop(self) -> None:
        self._over.set()
        self.join(60)


class Torture:
    def __init__(self, server: ServerProcess, disk: SmallDisk, seed: int) -> None:
        self._server = server
        self._disk = disk
        self._chance = random.Random(seed)
        self._topics: dict[str, list[Writer]] = {}
        self.acknowledged = self.lost = self.doubled = self.not_deleted = 0

    def cycle(self, number: int) -> None:
        with self._server.client() as client:
            assert create(client, f"topic-{number}", PARTITIONS, **_CONFIGS) is ErrorCode.NONE
        writers = [
            Writer(self._server, f"topic-{number}", partition, self._chance.getrandbits(32))
            for partition in range(PARTITIONS)
        ]
        self._topics[f"topic-{number}"] = writers
        for writer in writers:
            writer.start()
        eventually(lambda: all(w.refusals >= _REFUSALS or not w.is_alive() for w in writers), 60)
        self._disk.fill()
        if self._chance.random() < 0.5:
            self._server.kill()
            for writer in writers:
                writer.stop()
        else:
            for writer in writers:
                writer.stop()
            self._server.stop()
        assert [writer.error for writer in writers] == [None] * PARTITIONS
        self._disk.fill()
        self._server.start()
        self._compare()
        if len(self._topics) >= LIVE_TOPICS:
            self._delete(max(self._topics, key=self._size))
        self._disk.empty()

    def _size(self, topic: str) -> int:
        return sum(len(value) for writer in self._topics[topic] for value in writer.acknowledged)

    def _compare(self) -> None:
        with self._server.client() as client:
            for topic, writers in self._topics.items():
                for writer in writers:
                    found = read(client, topic, writer.partition)
                    there = set(found)
                    self.acknowledged += len(writer.acknowledged)
                    self.lost += len(set(writer.acknowledged) - there)
                    self.doubled += len(found) - len(there)
                    if writer.unknown in there:
                        writer.acknowledged.append(writer.unknown)
                        writer.unknown = None
                    self.lost += found != writer.acknowledged

    def _delete(self, topic: str) -> None:
        """While others take whatever room there is."""
        other = next(each for each in self._topics if each != topic)
        rival = Writer(self._server, other, 0, self._chance.getrandbits(32))
        rival.start()
        eventually(lambda: rival.refusals >= _REFUSALS or not rival.is_alive(), 60)
        with self._server.client() as client:
            if delete(client, topic) is not ErrorCode.NONE:
                self.not_deleted += 1
        before = len(rival.acknowledged)
        eventually(lambda: len(rival.acknowledged) > before)
        rival.stop()
        known = self._topics[other][0]
        known.acknowledged += rival.acknowledged
        known.unknown = rival.unknown
        del self._topics[topic]


def run(cycles: int, *, directory: Path, seed: int = 0, arguments: tuple[str, ...] = ()) -> Survived:
    with (
        small_disk(directory, DISK_BYTES) as disk,
        ServerProcess("--data", str(disk.path / "data"), *arguments) as server,
    ):
        torture = Torture(server, disk, seed)
        for number in range(cycles):
            torture.cycle(number)
        log = server.log()
    return Survived(
        cycles,
        torture.acknowledged,
        torture.lost,
        torture.doubled,
        torture.not_deleted,
        log.count("is fenced"),
        log.count("Traceback"),
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cycles", type=int, default=100)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    given = parser.parse_args()
    ok = True
    for arguments in ((), ("--fsync",)):
        with tempfile.TemporaryDirectory() as directory:
            try:
                survived = run(given.cycles, directory=Path(directory), seed=given.seed, arguments=arguments)
            except pytest.skip.Exception as reason:
                print(f"skipped: {reason}")  # noqa: T201
                return 0
        ok = ok and survived.ok
        print(f"{' '.join(arguments)} seed={given.seed}: {survived}")  # noqa: T201
    return 0 if ok else 1


if __name__ == "__main__":
    sys.exit(main())
