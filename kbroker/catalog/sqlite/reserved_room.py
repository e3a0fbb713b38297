"""Room on the disk that the catalog has before it needs it, so that it can be written when there is no other.

SQLite writes a transaction to its write-ahead log first (`-wal`), and to the database later. The log is given
`WAL_BYTES` while there are so many: SQLite takes zeros in it for nothing, and overwrites them. The database
is given its new pages before the transaction that adds them commits, so that the log can always be emptied
into it and used from its start again. What does not make the database larger is thus possible on a full disk:
that a topic is deleted, above all (adr/0017).
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

WAL_BYTES = 1 << 20


class ReservedRoom:
    def __init__(self, database: Path) -> None:
        """Of a database that SQLite has open, or had."""
        self._wal = Path(f"{database}-wal")
        # Open until SQLite is closed: closing any descriptor of the database gives up SQLite's locks on it.
        self._descriptor = os.open(database, os.O_RDWR | os.O_CLOEXEC)

    def for_wal(self) -> None:
        """A disk that is full already has none."""
        with contextlib.suppress(OSError):
            descriptor = os.open(self._wal, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
            try:
                _allocate(descriptor, WAL_BYTES)
            finally:
                os.close(descriptor)

    def for_database(self, size_bytes: int) -> None:
        """Raises OSError where there is none."""
        if size_bytes > os.fstat(self._descriptor).st_size:
            _allocate(self._descriptor, size_bytes)

    def close(self) -> None:
        """SQLite has closed the database, and removed its write-ahead log."""
        os.close(self._descriptor)
        self.for_wal()


def _allocate(descriptor: int, size_bytes: int) -> None:
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(descriptor, 0, size_bytes)
