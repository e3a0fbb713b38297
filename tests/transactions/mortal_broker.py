"""A broker on real files and a real catalog that dies at a step that a test chooses.

A step is an operation on the files of the logs and of the catalog's journals, or a commit of the catalog.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple, TypeVar

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
from tests.storage.faults import Crash, FaultyFiles

T = TypeVar("T")


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


class Death(NamedTuple):
    """Before or in the middle of (torn) an operation on files, before or after a commit of the catalog."""

    kind: str
    number: int

    def __str__(self) -> str:
        return f"{self.kind}-{self.number}"


def mortal_parts(path: Path, death: Death | None = None) -> tuple[CountingFiles, MortalDatabase]:
    """The files and the database of a broker that dies so; without, of one that lives and counts."""
    kind, number = death or ("", -1)
    path.mkdir()
    on_files = kind in ("crash", "torn")
    return (
        CountingFiles(number, kind) if on_files else CountingFiles(),
        MortalDatabase(path / "catalog.sqlite", -1 if on_files else number, after=kind == "after"),
    )


def deaths(files: CountingFiles, database: MortalDatabase, steps_of_setup: tuple[int, int]) -> list[Death]:
    """All that one who lived and counted could have died of, behind its first steps."""
    first_operation, first_write = steps_of_setup
    operations = list(enumerate(files.operations))[first_operation:]
    writes = range(first_write, database.writes)
    return [
        *(Death("crash", number) for number, _ in operations),
        *(Death("torn", number) for number, name in operations if name.startswith("write")),
        *(Death("before", number) for number in writes),
        *(Death("after", number) for number in writes),
    ]


def die(files: CountingFiles, database: MortalDatabase) -> None:
    """Nothing more gets to the disk."""
    files.abandon()
    sqlite3.Connection.close(database._connection)
