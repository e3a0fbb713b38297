"""Backups of a broker under load, each restored and judged as what the broker had at one moment.

Writers and processors go on as in `transaction_history`, without anybody being killed; keys of a compacted
topic are written all the time, topics come and go, records are deleted. Of each restored copy: `kbroker
verify` finds nothing; what was acknowledged before the backup was asked for is there; a transaction shows
wholly or not at all, and what was aborted not at all; the output is the input as far as the group's offsets
go; no group has committed an offset behind a log's end; each key has a value no older than its last
acknowledged one; no transaction hangs, and the broker on it takes records.

`python -m tests.torture.backups --cycles 50` for long runs; the tests make some.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections import defaultdict
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from confluent_kafka import KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from tests.support.server_process import ServerProcess, eventually
from tests.torture.committed import committed_offsets, open_partitions, read
from tests.torture.transaction_history import SETTINGS, TOPICS, Clients, Writer, create_topics, fill_input
from tests.torture.transactional_processor import GROUP, INPUT, OUTPUT
from tests.torture.transactional_writer import PARTITIONS, TOPIC

WRITERS = 3
INPUT_PARTITIONS = 2
KEYS = 50
KEYED = "keyed"
HOUSEKEEPING = (
    *("--set", "log.cleaner.backoff.ms=50"),
    *("--set", "log.retention.check.interval.ms=50"),
    *("--set", "log.initial.task.delay.ms=0"),
)


class Outcome(NamedTuple):
    backups: int
    committed: int
    compacted: int
    violations: list[str]

    @property
    def ok(self) -> bool:
        return not self.violations


class Taken(NamedTuple):
    """A backup, and what was known before it was asked for and after it was there."""

    path: Path
    acknowledged: dict[str, str]  # transactions, and their ends
    keys_before: dict[str, int]
    keys_after: dict[str, int]


class Keys:
    """Writes keys of a compacted topic, makes and deletes topics, deletes records, until it shall stop."""

    def __init__(self, bootstrap: str) -> None:
        self.acknowledged: dict[str, int] = {}
        self.sent: dict[str, int] = {}
        self.problem: BaseException | None = None
        self._bootstrap = bootstrap
        self._over = threading.Event()
        self._threads = [
            threading.Thread(target=self._run, args=[each]) for each in (self._write, self._churn)
        ]
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        self._over.set()
        for thread in self._threads:
            thread.join()
        if self.problem is not None:
            raise self.problem

    def _run(self, work: Any) -> None:
        try:
            work()
        except BaseException as error:
            self.problem = error

    def _write(self) -> None:
        producer = Producer(
            {"bootstrap.servers": self._bootstrap, "enable.idempotence": True, "linger.ms": 0}
        )
        number = 0
        while not self._over.is_set():
            for _ in range(20):
                number += 1
                key = f"key-{number % KEYS}"
                self.sent[key] = number

                def told(error: object, _: object, key: str = key, number: int = number) -> None:
                    assert error is None, error
                    self.acknowledged[key] = number

                producer.produce(KEYED, str(number).rjust(300), key, on_delivery=told)
            assert producer.flush(60) == 0

    def _churn(self) -> None:
        admin = AdminClient({"bootstrap.servers": self._bootstrap})
        producer = Producer({"bootstrap.servers": self._bootstrap, "linger.ms": 0, "log_level": 0})
        number = 0
        while not self._over.is_set():
            number += 1
            name = f"brief-{number % 3}"
            config = {"file.delete.delay.ms": "1", "segment.bytes": "1048576"}
            _done(admin.create_topics([NewTopic(name, 2, 1, config=config)]))
            for _ in range(20):
                producer.produce(name, bytes(1000), partition=number % 2)
            producer.flush(60)
            _done(admin.delete_records([TopicPartition(name, number % 2, 10)]))
            _done(admin.delete_topics([name]))


def _done(futures: dict[Any, Any]) -> None:
    for future in futures.values():
        with suppress(KafkaException):  # a topic of this name is still being deleted, say
            future.result(30)


class Backups:
    def __init__(self, cycles: int, directory: Path, arguments: tuple[str, ...]) -> None:
        self._cycles = cycles
        self._directory = directory
        self._journals = directory / "journals"
        self._journals.mkdir()
        self._arguments = (*SETTINGS, *HOUSEKEEPING, *arguments)
        self._server = ServerProcess("--data", str(directory / "data"), "--http-port", "0", *self._arguments)
        self._violations: list[str] = []
        self._committed = 0

    def run(self) -> Outcome:
        with self._server as server:
            create_topics(server.bootstrap)
            _create_keyed(server.bootstrap)
            fill_input(server.bootstrap, self._cycles * 200)
            clients = Clients(server.bootstrap, "")
            keys = Keys(server.bootstrap)
            writers = [Writer(clients, number, self._journals) for number in range(WRITERS)]
            processes = [clients.processor(f"processor-{number}") for number in range(2)]
            processes += [writer.latest for writer in writers]
            taken = []
            try:
                for number in range(self._cycles):
                    before = [writer.progress() for writer in writers]
                    eventually(lambda before=before: [each.progress() for each in writers] != before, 60)
                    taken.append(self._back_up(number, keys))
            finally:
                keys.stop()
                for process in processes:
                    process.terminate()
                for process in processes:
                    process.wait(90)
            compacted = server.log().count(f"{KEYED}-0: compacted")
            expected = self._expected()
        for each in taken:
            self._judge(each, expected)
        return Outcome(len(taken), self._committed, compacted, self._violations)

    def _back_up(self, number: int, keys: Keys) -> Taken:
        path = self._directory / f"backup-{number}"
        acknowledged, keys_before = self._acknowledged(), dict(keys.acknowledged)
        _kbroker("backup", str(path), "--http", self._server.url)
        return Taken(path, acknowledged, keys_before, dict(keys.sent))

    # what the writers know

    def _notes(self) -> Any:
        for journal in self._journals.iterdir():
            for line in journal.read_text().splitlines():
                if line.endswith("}"):
                    yield journal.name, json.loads(line)

    def _acknowledged(self) -> dict[str, str]:
        return {
            f"{name}:{note[end]}": end
            for name, note in self._notes()
            for end in ("committed", "aborted")
            if end in note
        }

    def _expected(self) -> dict[str, dict[int, int]]:
        """How many records each transaction has, by partition."""
        return {
            f"{name}:{note['begin']}": {int(partition): count for partition, count in note["records"].items()}
            for name, note in self._notes()
            if "begin" in note
        }

    # what must hold

    def _judge(self, taken: Taken, expected: dict[str, dict[int, int]]) -> None:
        restored = self._directory / "restored"
        _kbroker("restore", str(taken.path), str(restored))
        _kbroker("verify", str(restored), "--records")
        aborted = {key for key, end in self._acknowledged().items() if end == "aborted"}
        with ServerProcess("--data", str(restored), *self._arguments) as server:
            bootstrap = server.bootstrap
            eventually(lambda: not open_partitions(bootstrap, TOPICS), 60)
            shown: dict[str, dict[int, int]] = defaultdict(lambda: defaultdict(int))
            for partition in range(PARTITIONS):
                for value in read(bootstrap, TOPIC, partition):
                    shown[value.rpartition(":")[0]][partition] += 1
            for key, found in shown.items():
                if dict(found) != expected[key]:
                    self._wrong(taken, f"{key}: {dict(found)} of {expected[key]} shows")
                if key in aborted:
                    self._wrong(taken, f"{key}: aborted and there")
            for key, end in taken.acknowledged.items():
                if end == "committed":
                    self._committed += 1
                    if key not in shown:
                        self._wrong(taken, f"{key}: committed before, and lost")
            self._judge_copies(taken, bootstrap)
            self._judge_keys(taken, bootstrap)
            producer = Producer({"bootstrap.servers": bootstrap, "log_level": 0})
            producer.produce(TOPIC, b"later:0:0")
            if producer.flush(30):
                self._wrong(taken, "it takes no records")
            assert server.stop() == 0
        _kbroker("verify", str(restored), "--records")
        shutil.rmtree(restored)
        shutil.rmtree(taken.path)

    def _judge_copies(self, taken: Taken, bootstrap: str) -> None:
        offsets = committed_offsets(bootstrap, GROUP, INPUT, INPUT_PARTITIONS)
        for partition in range(INPUT_PARTITIONS):
            inputs, outputs = (read(bootstrap, topic, partition) for topic in (INPUT, OUTPUT))
            if outputs != inputs[: len(outputs)]:
                self._wrong(taken, f"output {partition} is not the input")
            if offsets[partition] != len(outputs) or offsets[partition] > len(inputs):
                self._wrong(
                    taken, f"output {partition} has {len(outputs)}, the offset is {offsets[partition]}"
                )

    def _judge_keys(self, taken: Taken, bootstrap: str) -> None:
        latest: dict[str, int] = {}
        for value in read(bootstrap, KEYED, 0):
            latest[f"key-{int(value) % KEYS}"] = int(value)
        for key, number in taken.keys_before.items():
            if not number <= latest.get(key, 0) <= taken.keys_after[key]:
                self._wrong(taken, f"{key} is {latest.get(key)}, not {number} to {taken.keys_after[key]}")

    def _wrong(self, taken: Taken, text: str) -> None:
        self._violations.append(f"{taken.path.name}: {text}")


def _kbroker(*arguments: str) -> None:
    command = [sys.executable, "-m", "kbroker", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, f"{arguments}: {done.returncode} {done.stdout} {done.stderr}"


def _create_keyed(bootstrap: str) -> None:
    config = {
        "cleanup.policy": "compact",
        "segment.bytes": "1048576",
        "segment.ms": "300",
        "min.cleanable.dirty.ratio": "0.01",
    }
    admin = AdminClient({"bootstrap.servers": bootstrap})
    for created in admin.create_topics([NewTopic(KEYED, 1, 1, config=config)]).values():
        created.result(30)


def run(cycles: int, *, directory: Path, arguments: tuple[str, ...] = ()) -> Outcome:
    return Backups(cycles, directory, arguments).run()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cycles", type=int, default=20)
    given = parser.parse_args()
    ok = True
    for arguments in ((), ("--fsync",)):
        begin = time.monotonic()
        with tempfile.TemporaryDirectory() as directory:
            outcome = run(given.cycles, directory=Path(directory), arguments=arguments)
        ok = ok and outcome.ok
        print(f"{' '.join(arguments)} {time.monotonic() - begin:.0f} s: {outcome}")  # noqa: T201
    return 0 if ok else 1


if __name__ == "__main__":
    sys.exit(main())
