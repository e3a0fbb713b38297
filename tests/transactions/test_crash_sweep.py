"""The broker dies at every step that transactions leave on the disk: each is there wholly or not at all.

Real files, a real catalog. One run counts the steps (operations on the files of the logs and of the catalog's
journals, commits of the catalog); then there is a run that dies before each of them, one that dies in the
middle of each write, and one that dies after each commit, and what a restart makes of it is looked at.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import pytest

from kbroker.broker import Broker
from kbroker.catalog.sqlite.catalog import SqliteCatalog
from kbroker.catalog.sqlite.database import Database
from kbroker.config.settings import Settings
from kbroker.network.budget import Budget
from kbroker.pending import Pending
from kbroker.storage.directory import LogDirectory
from kbroker.storage.files import Files, OpenFile
from kbroker.storage.interface import Buffer
from kbroker.storage.worker import InlineWorker
from tests.handlers.conftest import NOW_MS, Cluster, ManualScheduler
from tests.storage.faults import Crash, FaultyFiles, QuickFiles

from .broker_support import TransactionalClient, committed_values, fetched_offset

T = TypeVar("T")

GROUP = "group"


class MortalDatabase(Database):
    """A catalog whose process dies before or after one of its commits."""

    def __init__(self, path: Path, target: int = -1, *, after: bool = False) -> None:
        super().__init__(path)
        self.target = target
        self.after = after
        self.writes = 0

    def write(self, function: Callable[[sqlite3.Connection], T]) -> Pending[T]:
        self.writes += 1
        if self.writes - 1 == self.target and not self.after:
            raise Crash
        written = super().write(function)
        if self.writes - 1 == self.target:
            raise Crash
        return written


class CountingFiles(FaultyFiles):
    """Tells which writes are entries of the journals."""

    def __init__(self, target: int = -1, fault: str = "") -> None:
        super().__init__(target, fault)
        self.journals: set[int] = set()
        self.entries = 0

    def open(self, path: str, *, write: bool = False, create: bool = False) -> OpenFile:
        file = super().open(path, write=write, create=create)
        self.journals.discard(file.fd)
        if path.endswith(".journal"):
            self.journals.add(file.fd)
        return file

    def write_at(self, file: OpenFile, data: Buffer, position: int) -> int:
        self.entries += file.fd in self.journals
        return super().write_at(file, data, position)


class FileCluster(Cluster):
    """A broker on files. What it is given decides where it dies."""

    def __init__(self, path: Path, files: Files, database: Database) -> None:
        self.now_ms = NOW_MS
        self.path = path
        self.files = files
        self.catalog = SqliteCatalog(database, files)
        self.scheduler = ManualScheduler()
        self.logs = LogDirectory.open(str(path), worker=InlineWorker(), now_ms=NOW_MS, files=files)
        self.broker = Broker(
            Settings.load(flags={"node.id": "1"}),
            self.catalog,
            self.logs,
            worker=InlineWorker(),
            scheduler=self.scheduler,
            budget=Budget(1 << 30),
            clock=lambda: self.now_ms,
        )


class Run:
    """Two transactions over two partitions and a group; `answered` holds how the ends were answered."""

    def __init__(self, path: Path, files: CountingFiles, database: MortalDatabase, version: int) -> None:
        self.path = path
        self.files = files
        self.database = database
        self.version = version
        self.answered: list[int] = []
        self.steps_of_setup = (0, 0, 0)

    def live(self) -> None:
        cluster = FileCluster(self.path, self.files, self.database)
        cluster.create("topic", 2)
        client = TransactionalClient(cluster)
        client.init()
        self.steps_of_setup = (len(self.files.operations), self.database.writes, self.files.entries)
        produce_version, end_version = (12, 5) if self.version == 2 else (11, 4)
        for number, commit in enumerate((True, False, True)):
            if self.version != 2:
                client.add("topic", 0, 1)
                client.add_offsets(GROUP)
            for partition in (0, 1):
                value = b"transaction %d" % number
                client.produce("topic", value, value, partition=partition, version=produce_version)
            client.commit_offset(GROUP, "topic", number, version=5 if self.version == 2 else 4)
            self.answered.append(client.end(commit=commit, version=end_version).error_code)
        cluster.broker.close()

    def die(self) -> None:
        self.files.abandon()
        sqlite3.Connection.close(self.database._connection)


def whole_transactions(cluster: FileCluster) -> list[int]:
    """The transactions that show in both partitions, wholly."""
    seen = [committed_values(cluster.broker.find_log("topic", partition)) for partition in (0, 1)]
    assert seen[0] == seen[1], "a transaction shows in one partition only"
    assert seen[0][::2] == seen[0][1::2], "half of a transaction shows"
    return [int(value.split()[1]) for value in seen[0][::2]]


def check(run: Run) -> None:
    """Start again where it died, and look."""
    cluster = FileCluster(run.path, QuickFiles(), Database(run.path / "catalog.sqlite"))
    if cluster.broker.topics.get("topic") is None:
        return
    shown = whole_transactions(cluster)
    assert run.answered == [0] * len(run.answered)
    # 1 is aborted. What was answered shows; what was not may, as a whole.
    answered = [number for number in range(len(run.answered)) if number != 1]
    assert shown[: len(answered)] == answered
    assert shown in ([], [0], [0, 2])
    last = shown[-1] if shown else -1
    code, offset = fetched_offset(cluster, GROUP, "topic", require_stable=False)
    assert (code, offset) == (0, last)
    # Whatever is still open can be ended, and then nothing hangs.
    if any(
        each.transactional_id == "id" for each in cluster.broker.transactions.list_transactions((), (), -1, 0)
    ):
        TransactionalClient(cluster).init()
    for partition in (0, 1):
        log = cluster.broker.find_log("topic", partition)
        assert log.last_stable_offset == log.high_watermark
        assert all(state.current_txn_start_offset < 0 for state in log.producers())
    assert whole_transactions(cluster) == shown
    cluster.logs.close()
    cluster.catalog.close()


@pytest.mark.parametrize("version", [1, 2])
def test_a_crash_at_any_step_leaves_whole_transactions(tmp_path: Path, version: int) -> None:
    path = tmp_path / "counted"
    path.mkdir()
    counted = Run(path, CountingFiles(), MortalDatabase(path / "catalog.sqlite"), version)
    counted.live()
    counted.die()
    check(counted)
    first_operation, first_write, first_entry = counted.steps_of_setup
    # Each transaction begins and is decided, the last is complete.
    assert counted.files.entries - first_entry >= 7
    operations = list(enumerate(counted.files.operations))[first_operation:]
    writes = range(first_write, counted.database.writes)
    deaths: list[tuple[str, int]] = [("crash", number) for number, _ in operations]
    deaths += [("torn", number) for number, name in operations if name.startswith("write")]
    deaths += [("before", number) for number in writes] + [("after", number) for number in writes]
    for kind, number in deaths:
        path = tmp_path / f"{kind}-{number}"
        path.mkdir()
        files = CountingFiles(number, kind) if kind in ("crash", "torn") else CountingFiles()
        on_commit = number if kind in ("before", "after") else -1
        database = MortalDatabase(path / "catalog.sqlite", on_commit, after=kind == "after")
        run = Run(path, files, database, version)
        with pytest.raises(Crash):
            run.live()
        run.die()
        check(run)
