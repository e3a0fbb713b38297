"""What the tests of all journaled stores share: a store in a directory, and the machine that mistreats it."""

from __future__ import annotations

import errno
import os
import sqlite3
from collections.abc import Callable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hypothesis.stateful import RuleBasedStateMachine, rule

from kbroker.catalog.errors import CatalogFull
from kbroker.catalog.sqlite.database import Database
from kbroker.catalog.sqlite.file_names import CATALOG
from kbroker.catalog.sqlite.journal import Journal
from kbroker.pending import Pending
from kbroker.storage.files import Files, OpenFile
from kbroker.storage.interface import Buffer
from tests.catalog.small_disk import crash, fill_disk, make_room


class SlowDatabase(Database):
    """Writes at once; or, while `held`, when the test says so, in their order."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.held = False
        self.waiting: list[tuple[Callable[[sqlite3.Connection], Any], Pending[Any]]] = []

    def write(self, function: Callable[[sqlite3.Connection], Any]) -> Pending[Any]:
        if not self.held:
            return super().write(function)
        result: Pending[Any] = Pending()
        self.waiting.append((function, result))
        return result

    def finish(self) -> None:
        self.held = False
        while self.waiting:
            function, result = self.waiting.pop(0)
            super().write(function).then(result.follow)


class TearingFiles(Files):
    """Files that fail as the test says."""

    share: float | None = None
    """How much of the next write gets into its file; then the disk is full."""
    truncates = True

    def write_at(self, file: OpenFile, data: Buffer, position: int) -> int:
        if self.share is None:
            return super().write_at(file, data, position)
        if self.share < 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        part, self.share = memoryview(data)[: int(len(data) * self.share)], -1
        return super().write_at(file, part, position)

    def truncate(self, file: OpenFile, size: int) -> None:
        if not self.truncates:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        super().truncate(file, size)


class OpenedStore:
    """A store in a directory, opened as a start of the broker does."""

    names: Sequence[str]

    def __init__(self, directory: Path) -> None:
        self.database = SlowDatabase(directory / CATALOG)
        self.files = TearingFiles()
        self.journal = Journal(self.files, directory, self.names)

    def read(self, query: str) -> list[tuple[object, ...]]:
        return self.database.read(lambda connection: connection.execute(query).fetchall())

    def stop(self) -> None:
        raise NotImplementedError

    def crash(self) -> None:
        """The process is gone: nothing is applied, nothing is closed in order."""
        self.journal.close()
        crash(self.database)


class JournaledStoreMachine(RuleBasedStateMachine):
    """Disks that fill, crashes and restarts, for a store that is compared with `expected`."""

    opened: OpenedStore

    def __init__(self) -> None:
        super().__init__()
        self.directory = TemporaryDirectory()
        self.path = Path(self.directory.name)
        self.full = False
        self.open()

    def open(self) -> None:
        """Open the store, and compare what it loads with what was done."""
        raise NotImplementedError

    @rule()
    def disk_fills(self) -> None:
        if not self.full:
            fill_disk(self.opened.database)
            self.full = True

    @rule()
    def disk_has_room(self) -> None:
        if self.full:
            make_room(self.opened.database)
            self.full = False

    @rule()
    def crash(self) -> None:
        self.disk_has_room()
        self.opened.crash()
        self.open()

    @rule()
    def restart(self) -> None:
        self.disk_has_room()
        self.opened.stop()
        assert not any((self.path / name).stat().st_size for name in self.opened.names)
        self.open()

    def done(self, write: Pending[None]) -> bool:
        """Whether it was; only a full disk is a reason that it was not."""
        try:
            write.result()
        except CatalogFull:
            assert self.full
            return False
        return True

    def teardown(self) -> None:
        self.opened.crash()
        self.directory.cleanup()
