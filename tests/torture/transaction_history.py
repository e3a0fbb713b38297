"""kill -9 of the broker and of clients, clients that sleep too long, and transactions: judge the history.

Writers (`transactional_writer`) note what they know of their transactions. Processors
(`transactional_processor`) copy an input to an output. Afterwards: a committed transaction shows wholly, an
aborted one not at all, one of unknown outcome wholly or not at all; nothing twice; each producer's
records in its order; every input once in the output, and the group's offsets where the output ends; no
transaction hangs.

`python -m tests.torture.transaction_history --cycles 500` for long runs, with `--http` by clients that have
nothing but HTTP (`http_clients`); the tests run some cycles.
"""

from __future__ import annotations

import argparse
import json
import random
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from pathlib import Path
from typing import NamedTuple

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from tests.support.server_process import ServerProcess, eventually
from tests.torture.committed import committed_offsets, open_partitions, read
from tests.torture.transactional_processor import GROUP, INPUT, OUTPUT
from tests.torture.transactional_writer import PARTITIONS, TIMEOUT_MS, TOPIC

WRITERS = 3
PROCESSORS = 2
INPUT_PARTITIONS = 2
INPUTS_PER_CYCLE = 100
TOPICS = ((TOPIC, PARTITIONS), (OUTPUT, INPUT_PARTITIONS))
SETTINGS = (
    *("--set", "transaction.abort.timed.out.transaction.cleanup.interval.ms=200"),
    *("--set", "group.min.session.timeout.ms=500"),
    *("--set", "group.initial.rebalance.delay.ms=0"),
)
HTTP_SETTINGS = (  # consumers that died with the broker must not be waited for
    *("--set", "group.consumer.min.session.timeout.ms=1500"),
    *("--set", "group.consumer.session.timeout.ms=1500"),
    *("--set", "group.consumer.min.heartbeat.interval.ms=300"),
    *("--set", "group.consumer.heartbeat.interval.ms=300"),
)


class Outcome(NamedTuple):
    committed: int
    aborted: int
    unknown: int  # the client died or gave up before it heard
    unknown_but_there: int
    copied: int
    cycles: int
    violations: list[str]

    @property
    def ok(self) -> bool:
        return not self.violations


class Clients:
    """How writers and processors are started: with Kafka's protocol, or with nothing but HTTP."""

    def __init__(self, bootstrap: str, url: str) -> None:
        self._bootstrap = bootstrap
        self._url = url

    def writer(self, *arguments: str) -> subprocess.Popen[bytes]:
        if self._url:
            return _run_module("tests.torture.http_clients", "writer", self._url, *arguments)
        return _run_module("tests.torture.transactional_writer", self._bootstrap, *arguments)

    def processor(self, name: str) -> subprocess.Popen[bytes]:
        if self._url:
            return _run_module("tests.torture.http_clients", "processor", self._url, name)
        return _run_module("tests.torture.transactional_processor", self._bootstrap, name)


class Writer:
    """A transactional id, its incarnations one after the other, and their journals."""

    def __init__(self, clients: Clients, number: int, directory: Path) -> None:
        self._clients = clients
        self.transactional_id = f"writer-{number}"
        self._directory = directory
        self.incarnations: list[subprocess.Popen[bytes]] = []
        self.start()

    def start(self) -> None:
        """Another incarnation; the one before, if it lives, becomes a zombie."""
        name = f"{self.transactional_id}.{len(self.incarnations)}"
        self.incarnations.append(
            self._clients.writer(self.transactional_id, name, str(self._directory / name))
        )

    @property
    def latest(self) -> subprocess.Popen[bytes]:
        return self.incarnations[-1]

    def progress(self) -> int:
        journal = self._directory / f"{self.transactional_id}.{len(self.incarnations) - 1}"
        return journal.read_text().count('"committed"') if journal.exists() else 0


class History:
    def __init__(
        self, cycles: int, data: Path, journals: Path, seed: int, arguments: tuple[str, ...]
    ) -> None:
        self._cycles = cycles
        self._journals = journals
        self._chance = random.Random(seed)
        self._server = ServerProcess("--data", str(data), *SETTINGS, *arguments)
        self._writers: list[Writer] = []
        self._processors: list[subprocess.Popen[bytes]] = []
        self._inputs = max(cycles, 1) * INPUTS_PER_CYCLE
        self._clients = Clients("", "")

    def run(self) -> Outcome:
        with self._server as server:
            create_topics(server.bootstrap)
            fill_input(server.bootstrap, self._inputs)
            self._clients = Clients(server.bootstrap, server.url)
            try:
                self._writers = [Writer(self._clients, n, self._journals) for n in range(WRITERS)]
                self._processors = [self._start_processor(number) for number in range(PROCESSORS)]
                for _ in range(self._cycles):
                    self._let_pass()
                    self._disturb()
                self._end_clients()
            finally:
                for process in self._all_processes():
                    process.kill()
                    process.wait()
            return self._judge(server.bootstrap)

    # what happens

    def _start_processor(self, number: int) -> subprocess.Popen[bytes]:
        return self._clients.processor(f"processor-{number}")

    def _all_processes(self) -> list[subprocess.Popen[bytes]]:
        return [*self._processors, *(each for writer in self._writers for each in writer.incarnations)]

    def _let_pass(self) -> None:
        """Wait until some writer has committed something more, then a random moment longer."""
        before = [writer.progress() for writer in self._writers]
        eventually(lambda: [writer.progress() for writer in self._writers] != before, 60)
        time.sleep(self._chance.random() * 0.2)

    def _disturb(self) -> None:
        what = self._chance.random()
        if what < 0.6:
            self._server.kill()
            self._server.start()
        elif what < 0.75:
            writer = self._chance.choice(self._writers)
            writer.latest.kill()
            writer.start()
        elif what < 0.9:
            number = self._chance.randrange(PROCESSORS)
            self._processors[number].kill()
            self._processors[number].wait()
            self._processors[number] = self._start_processor(number)
        else:
            self._put_to_sleep(self._chance.choice(self._writers))

    def _put_to_sleep(self, writer: Writer) -> None:
        """A writer that sleeps past its timeout, or until somebody else has its transactional id."""
        sleeper = writer.latest
        sleeper.send_signal(signal.SIGSTOP)
        if self._chance.random() < 0.5:
            writer.start()
            self._let_pass()
        else:
            time.sleep(TIMEOUT_MS / 1000 + 0.5)
        sleeper.send_signal(signal.SIGCONT)

    def _end_clients(self) -> None:
        """Let the processors copy all there is; writers finish what they have under way."""
        bootstrap = self._server.bootstrap
        eventually(
            lambda: sum(committed_offsets(bootstrap, GROUP, INPUT, INPUT_PARTITIONS)) >= self._inputs, 180
        )
        for process in self._all_processes():
            process.send_signal(signal.SIGTERM)
        for process in self._all_processes():
            process.wait(90)

    # what must hold

    def _judge(self, bootstrap: str) -> Outcome:
        violations: list[str] = []
        eventually(
            lambda: not open_partitions(bootstrap, TOPICS), 60
        )  # those of the killed, by their timeout
        shown: dict[str, dict[int, list[int]]] = defaultdict(lambda: defaultdict(list))
        for partition in range(PARTITIONS):
            order: dict[str, tuple[int, int]] = {}
            for value in read(bootstrap, TOPIC, partition):
                name, number, index = value.split(":")
                place = (int(number), int(index))
                if place <= order.get(name, (0, 0)):
                    violations.append(f"{name}: {place} after {order[name]} in partition {partition}")
                order[name] = place
                shown[f"{name}:{number}"][partition].append(int(index))
        counts: Counter[str] = Counter()
        for transaction, (expected, outcome) in self._journaled().items():
            found = {partition: len(indexes) for partition, indexes in shown.pop(transaction, {}).items()}
            counts[outcome] += 1
            if found not in ({}, expected):
                violations.append(f"{transaction}: {found} of {expected} shows ({outcome})")
            elif outcome == "committed" and not found:
                violations.append(f"{transaction}: committed and lost")
            elif outcome == "aborted" and found:
                violations.append(f"{transaction}: aborted and there")
            elif outcome == "unknown" and found:
                counts["unknown but there"] += 1
        violations += [f"{transaction}: never begun" for transaction in shown]
        copied = self._judge_copies(bootstrap, violations)
        return Outcome(
            counts["committed"],
            counts["aborted"],
            counts["unknown"],
            counts["unknown but there"],
            copied,
            self._cycles,
            violations,
        )

    def _journaled(self) -> dict[str, tuple[dict[int, int], str]]:
        """Transaction → its records by partition, and what its writer knows of its end."""
        transactions: dict[str, tuple[dict[int, int], str]] = {}
        for journal in self._journals.iterdir():
            for line in journal.read_text().splitlines():
                if not line.endswith("}"):
                    continue  # killed in the middle of it
                note = json.loads(line)
                if "begin" in note:
                    records = {int(partition): count for partition, count in note["records"].items()}
                    # Before "committing" it cannot be committed.
                    transactions[f"{journal.name}:{note['begin']}"] = (records, "aborted")
                    continue
                ((what, number),) = note.items()
                key = f"{journal.name}:{number}"
                transactions[key] = (transactions[key][0], "unknown" if what == "committing" else what)
        return transactions

    def _judge_copies(self, bootstrap: str, violations: list[str]) -> int:
        offsets = _offsets(bootstrap)
        copied = 0
        for partition in range(INPUT_PARTITIONS):
            inputs = read(bootstrap, INPUT, partition)
            outputs = read(bootstrap, OUTPUT, partition)
            copied += len(outputs)
            if outputs != inputs[: len(outputs)]:
                twice = [value for value, count in Counter(outputs).items() if count > 1]
                violations.append(f"output {partition}: not the input in its order; twice: {twice[:5]}")
            if offsets[partition] != len(outputs):
                violations.append(
                    f"output {partition} ends at {len(outputs)}, the offset is {offsets[partition]}"
                )
        return copied


def run(
    cycles: int,
    *,
    data: Path,
    journals: Path,
    seed: int = 0,
    arguments: tuple[str, ...] = (),
    http: bool = False,
) -> Outcome:
    """``http``: by clients that have nothing but HTTP."""
    journals.mkdir()
    if http:
        arguments = (*arguments, *HTTP_SETTINGS, "--http-port", str(_free_port()))
    return History(cycles, data, journals, seed, arguments).run()


def _free_port() -> int:
    """The same after each restart."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


def _offsets(bootstrap: str) -> list[int]:
    return committed_offsets(bootstrap, GROUP, INPUT, INPUT_PARTITIONS)


def _run_module(name: str, *arguments: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-m", name, *arguments])


def create_topics(bootstrap: str) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    # Small segments, so that rolls, snapshots and transaction indexes are hit by the kills too.
    config = {"segment.bytes": "1048576", "index.interval.bytes": "1024"}
    wanted = [
        NewTopic(TOPIC, PARTITIONS, 1, config=config),
        NewTopic(INPUT, INPUT_PARTITIONS, 1, config=config),
        NewTopic(OUTPUT, INPUT_PARTITIONS, 1, config=config),
    ]
    for created in admin.create_topics(wanted).values():
        created.result(30)


def fill_input(bootstrap: str, count: int) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "enable.idempotence": True})
    for number in range(count):
        producer.produce(INPUT, str(number).encode(), partition=number % INPUT_PARTITIONS)
        producer.poll(0)
    assert producer.flush(60) == 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cycles", type=int, default=100)
    parser.add_argument("--http", action="store_true")
    parser.add_argument("--seed", type=int, default=int(time.time()))
    given = parser.parse_args()
    ok = True
    for arguments in ((), ("--fsync",)):
        with tempfile.TemporaryDirectory() as directory:
            path = Path(directory)
            outcome = run(
                given.cycles,
                data=path / "data",
                journals=path / "journals",
                seed=given.seed,
                arguments=arguments,
                http=given.http,
            )
        ok = ok and outcome.ok
        print(f"{' '.join(arguments)} seed={given.seed}: {outcome}")  # noqa: T201
    return 0 if ok else 1


if __name__ == "__main__":
    sys.exit(main())
