"""The catalog's SQLite database: one connection, one writer thread, grouped commits.

Invariants:
- A write is settled only after the transaction that holds it is committed. Writes that arrive while a commit
  runs share the next one, in their order.
- A write that raises leaves nothing behind (savepoint) and fails alone; a failed commit fails all it held.
- After ``start`` only the writer thread touches the connection.
- Nobody else may have the database open: the data directory is locked. So SQLite needs no file that is shared
  with others (`-shm`).
- On a full disk what does not make the database larger is still written (see reserved_room).
- Results are handed to ``deliver``, which brings them onto the caller's thread (the loop's).
"""

from __future__ import annotations

import contextlib
import queue
import sqlite3
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from kbroker.catalog.errors import (
    CatalogDamaged,
    CatalogError,
    CatalogFull,
    CatalogTooNew,
    CatalogUnreadable,
)
from kbroker.catalog.sqlite.reserved_room import ReservedRoom
from kbroker.catalog.sqlite.schema import MIGRATIONS
from kbroker.pending import Pending
from kbroker.storage.errors import shortage

if TYPE_CHECKING:
    from kbroker.catalog.interface import Deliver

_PASSING = (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR_WRITE, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_NOMEM)
_DAMAGED = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)

T = TypeVar("T")

_CHECKPOINT_PAGES = 10_000  # of 4 KiB
_MAX_GROUP = 5_000  # writes that may share one commit


class _Job:
    __slots__ = ("alone", "error", "function", "pending", "value")

    def __init__(self, function: Callable[[sqlite3.Connection], Any], *, alone: bool = False) -> None:
        self.function = function
        self.alone = alone
        self.pending: Pending[Any] = Pending()
        self.value: Any = None
        self.error: BaseException | None = None

    def settle(self) -> None:
        if self.error is None:
            self.pending.resolve(self.value)
        else:
            self.pending.fail(self.error)


class Database:
    def __init__(self, path: Path, *, sync_full: bool = False) -> None:
        """Open or create the database at ``path``."""
        self.directory = path.parent
        self.sync_full = sync_full
        try:
            self._connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        except sqlite3.Error as error:
            raise unreadable(error) from error
        self._jobs: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        self._deliver: Deliver = lambda callback: callback()
        self.commits = 0
        try:
            self._prepare()
            self._room = ReservedRoom(path)
        except BaseException as error:
            self._connection.close()
            if isinstance(error, sqlite3.Error):
                raise unreadable(error) from error
            raise
        self._room.for_wal()

    def _prepare(self) -> None:
        self._connection.execute("PRAGMA locking_mode=EXCLUSIVE")
        self._connection.execute("PRAGMA journal_mode=WAL")
        self._connection.execute(f"PRAGMA synchronous={'FULL' if self.sync_full else 'NORMAL'}")
        # No files but its own, which are open all the time.
        self._connection.execute("PRAGMA temp_store=MEMORY")
        # A checkpoint syncs the database, and commits wait for it: rather seldom and larger.
        self._connection.execute(f"PRAGMA wal_autocheckpoint={_CHECKPOINT_PAGES}")
        self._migrate()
        (self._page_bytes,) = self._connection.execute("PRAGMA page_size").fetchone()

    def read(self, function: Callable[[sqlite3.Connection], T]) -> T:
        """Read at once, on this thread. Only before ``start``."""
        if self._thread is not None:
            raise RuntimeError("the writer thread owns the connection")
        try:
            return function(self._connection)
        except sqlite3.Error as error:
            raise unreadable(error) from error

    def start(self, deliver: Deliver) -> None:
        """From now on writes go through the writer thread."""
        self._deliver = deliver
        self._thread = threading.Thread(target=self._write_loop, name="catalog", daemon=True)
        self._thread.start()

    def write(self, function: Callable[[sqlite3.Connection], T]) -> Pending[T]:
        """Run ``function`` inside a transaction; the result comes once it is committed."""
        job = _Job(function)
        if self._thread is None:
            self._commit_group([job])
            job.settle()
        else:
            self._jobs.put(job)
        return job.pending

    def alone(self, function: Callable[[sqlite3.Connection], T]) -> Pending[T]:
        """Run ``function`` behind all writes that were asked for, and outside of any transaction."""
        job = _Job(function, alone=True)
        if self._thread is None:
            self._run_alone(job)
            job.settle()
        else:
            self._jobs.put(job)
        return job.pending

    def close(self) -> None:
        """Finish the writes already asked for and close. Their results are delivered."""
        if self._thread is not None:
            self._jobs.put(None)
            self._thread.join()
            self._thread = None
        with contextlib.suppress(sqlite3.Error):
            self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        self._connection.close()
        self._room.close()

    def _migrate(self) -> None:
        (seen,) = self._connection.execute("PRAGMA user_version").fetchone()
        if seen > len(MIGRATIONS):
            raise CatalogTooNew(
                f"the catalog has schema version {seen}, this kbroker knows up to {len(MIGRATIONS)}: "
                "it was written by a newer kbroker"
            )
        for number, script in enumerate(MIGRATIONS[seen:], seen + 1):
            self._connection.executescript(f"BEGIN IMMEDIATE;{script};PRAGMA user_version={number};COMMIT;")

    def _write_loop(self) -> None:
        stopping = False
        while not stopping:
            group: list[_Job] = []
            while (following := self._jobs.get()) is not None and not following.alone:
                group.append(following)
                if len(group) >= _MAX_GROUP or self._jobs.empty():
                    break
            stopping = following is None
            if group:
                self._commit_group(group)
                self._deliver_group(group)
            if following is not None and following.alone:
                self._run_alone(following)
                self._deliver_group([following])

    def _run_alone(self, job: _Job) -> None:
        try:
            job.value = job.function(self._connection)
        except Exception as error:
            job.error = _translated(error) if isinstance(error, (sqlite3.Error, OSError)) else error

    def _deliver_group(self, group: list[_Job]) -> None:
        def settle_all() -> None:
            for job in group:
                job.settle()

        # A RuntimeError means that the loop is closed: nobody is left to hear of it.
        with contextlib.suppress(RuntimeError):
            self._deliver(settle_all)

    def _commit_group(self, group: list[_Job]) -> None:
        self._try_to_commit(group)
        if any(isinstance(job.error, CatalogFull) for job in group):
            # The log has room again once the database has what it holds; and one that needs more room than
            # there is shall not take the others along.
            with contextlib.suppress(sqlite3.Error):
                self._connection.execute("PRAGMA wal_checkpoint(PASSIVE)")
            for job in group:
                if isinstance(job.error, CatalogFull):
                    self._try_to_commit([job])
        self.commits += 1

    def _try_to_commit(self, group: list[_Job]) -> None:
        connection = self._connection
        try:
            connection.execute("BEGIN IMMEDIATE")
            for job in group:
                self._run_in_savepoint(job)
            (pages,) = connection.execute("PRAGMA page_count").fetchone()
            self._room.for_database(pages * self._page_bytes)
            connection.execute("COMMIT")
        except (sqlite3.Error, OSError) as error:
            failure = _translated(error)
            with contextlib.suppress(sqlite3.Error):
                connection.execute("ROLLBACK")
            for job in group:
                job.error = job.error or failure

    def _run_in_savepoint(self, job: _Job) -> None:
        job.error = None
        self._connection.execute("SAVEPOINT job")
        try:
            job.value = job.function(self._connection)
        except Exception as error:
            if isinstance(error, sqlite3.Error) and not self._connection.in_transaction:
                raise  # SQLite has undone everything, as it does when the disk is full
            job.error = _translated(error) if isinstance(error, sqlite3.Error) else error
            self._connection.execute("ROLLBACK TO job")
        self._connection.execute("RELEASE job")


def unreadable(error: sqlite3.Error) -> CatalogUnreadable:
    damaged = getattr(error, "sqlite_errorcode", None) in _DAMAGED
    return (CatalogDamaged if damaged else CatalogUnreadable)(str(error))


def _translated(error: sqlite3.Error | OSError) -> CatalogError:
    if isinstance(error, OSError):
        passes = shortage(error, "") is not None
    else:
        passes = getattr(error, "sqlite_errorcode", None) in _PASSING
    if passes:
        return CatalogFull(f"the catalog cannot be written: {error}")
    return CatalogError(f"the catalog refused a write: {error}")
