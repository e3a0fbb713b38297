"""kill -9 of the broker and of members of a share group, again and again, under real producers.

Afterwards every record must have been delivered to somebody, and none may have been accepted twice: what the
broker has confirmed is done with, whatever dies.

`python -m tests.torture.share_consumers --cycles 200` for long runs; the tests run a few cycles.
"""

from __future__ import annotations

import argparse
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import IO, NamedTuple

from confluent_kafka import Consumer, KafkaException, TopicPartition

from kbroker.protocol.messages.describe_share_group_offsets import (
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsRequestGroup,
)
from kbroker.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from tests.support.server_process import ServerProcess
from tests.torture.kill_cycles import PARTITIONS, TOPIC, Load, create_topic, let_pass
from tests.torture.share_worker import GROUP

_WORKERS = 4
_MEMBERS_KILLED = 0.5  # in this part of the cycles one member dies as well
_SECONDS = 180
_GROUP_CONFIGS = 32
_SETTINGS = (
    *("--set", "group.share.record.lock.duration.ms=1000"),
    *("--set", "group.share.min.record.lock.duration.ms=1000"),
)

Offset = tuple[int, int]


class Outcome(NamedTuple):
    records: int
    delivered: int  # deliveries, not records
    accepted: int
    lost: int  # never delivered
    again: int  # accepted more than once
    cycles: int

    @property
    def ok(self) -> bool:
        return not (self.lost or self.again)


class Workers:
    def __init__(self, bootstrap: str, directory: Path, chance: random.Random) -> None:
        self._bootstrap = bootstrap
        self._directory = directory
        self._chance = chance
        self._said: list[Path] = []
        self._running: list[tuple[subprocess.Popen[bytes], IO[bytes]]] = []
        for _ in range(_WORKERS):
            self._start()

    def _start(self) -> None:
        path = self._directory / f"worker-{len(self._said)}"
        self._said.append(path)
        out = path.open("wb")
        command = [sys.executable, "-m", "tests.torture.share_worker", self._bootstrap, str(len(self._said))]
        self._running.append((subprocess.Popen(command, stdout=out), out))

    def kill_one(self) -> None:
        """One dies without a word, another takes its place."""
        process, out = self._running.pop(self._chance.randrange(len(self._running)))
        process.kill()
        process.wait(30)
        out.close()
        self._start()

    def stop(self) -> None:
        for process, _ in self._running:
            process.terminate()
        for process, out in self._running:
            process.wait(60)
            out.close()
        self._running.clear()

    def said(self) -> tuple[Counter[Offset], Counter[Offset]]:
        """What was delivered, and what was accepted."""
        delivered: Counter[Offset] = Counter()
        accepted: Counter[Offset] = Counter()
        for path in self._said:
            for line in path.read_text().splitlines():
                kind, *numbers = line.split()
                if len(numbers) == 2:  # the last line of one that was killed may be torn
                    (delivered if kind == "D" else accepted)[int(numbers[0]), int(numbers[1])] += 1
        return delivered, accepted


def run(cycles: int, *, directory: Path, seed: int = 0, arguments: tuple[str, ...] = ()) -> Outcome:
    chance = random.Random(seed)
    with ServerProcess("--data", str(directory / "data"), *_SETTINGS, *arguments) as server:
        create_topic(server.bootstrap)
        _begin_at_the_start(server)
        loads = [Load(server.bootstrap, partition, True) for partition in range(PARTITIONS)]
        for load in loads:
            load.start()
        workers = Workers(server.bootstrap, directory, chance)
        try:
            for _ in range(cycles):
                let_pass(loads, chance)
                server.kill()
                server.start()
                if chance.random() < _MEMBERS_KILLED:
                    workers.kill_one()
            for load in loads:
                load.stop()
            _wait_until_done(server)
        finally:
            workers.stop()
        records = _records(server.bootstrap)
    delivered, accepted = workers.said()
    return Outcome(
        records=len(records),
        delivered=delivered.total(),
        accepted=len(accepted),
        lost=len(records - delivered.keys()),
        again=sum(count > 1 for count in accepted.values()),
        cycles=cycles,
    )


def _begin_at_the_start(server: ServerProcess) -> None:
    config = AlterableConfig("share.auto.offset.reset", 0, "earliest")
    resource = AlterConfigsResource(_GROUP_CONFIGS, GROUP, [config])
    with server.client() as client:
        answer = client.ask(IncrementalAlterConfigsRequest([resource]), 1)
    assert [each.error_code for each in answer.responses] == [0]


def _wait_until_done(server: ServerProcess) -> None:
    deadline = time.monotonic() + _SECONDS
    while any(lags := _lags(server)) or len(lags) < PARTITIONS:
        assert time.monotonic() < deadline, f"records are left: {lags}"
        time.sleep(0.1)


def _lags(server: ServerProcess) -> list[int]:
    request = DescribeShareGroupOffsetsRequest([DescribeShareGroupOffsetsRequestGroup(GROUP, None)])
    with server.client() as client:
        (group,) = client.ask(request, 1).groups
    return [partition.lag for topic in group.topics for partition in topic.partitions]


def _records(bootstrap: str) -> set[Offset]:
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "judge"})
    try:
        ends = [consumer.get_watermark_offsets(TopicPartition(TOPIC, each)) for each in range(PARTITIONS)]
    finally:
        consumer.close()
    found: set[Offset] = set()
    for partition, end in enumerate(ends):
        if end is None:
            raise KafkaException(f"partition {partition} does not tell its end")
        found.update((partition, offset) for offset in range(*end))
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cycles", type=int, default=100)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    given = parser.parse_args()
    ok = True
    for arguments in ((), ("--fsync",)):
        with tempfile.TemporaryDirectory() as directory:
            outcome = run(given.cycles, directory=Path(directory), seed=given.seed, arguments=arguments)
        ok = ok and outcome.ok
        print(f"{' '.join(arguments)} seed={given.seed}: {outcome}")  # noqa: T201
    return 0 if ok else 1


if __name__ == "__main__":
    sys.exit(main())
