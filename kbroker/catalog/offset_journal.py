"""Offset commits, noted in a file until the catalog has them.

A commit is written behind the last one, which costs microseconds and outlives the process; so it can be
answered at once, and the catalog takes many of them in one transaction later. Two files take turns: while the
catalog takes what one holds, new commits go to the other.

Sequence numbers of entries (see journal_entry) grow by one; the catalog remembers up to which it has them, so
nothing is applied twice.

Invariants: an entry that was appended is read again, whole and in its order, by whoever opens the directory
next; one that could not be appended leaves nothing behind. A torn end is cut when it is read.
"""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Mapping
from pathlib import Path

from kbroker.catalog.database import CatalogError, CatalogFull
from kbroker.catalog.journal_entry import Entry, encode, read_whole
from kbroker.catalog.stored import JOURNALS
from kbroker.coordinators.groups.store import Offsets

_FULL = (errno.ENOSPC, errno.EDQUOT)


class OffsetJournal:
    def __init__(self, directory: Path) -> None:
        self._files = [_File(directory / name) for name in JOURNALS]
        self._current = 0
        self._sequence = 0
        self.broken = False
        """An append failed and could not be undone: nothing more is taken."""

    @property
    def sequence(self) -> int:
        """That of the last entry."""
        return self._sequence

    def read(self, after: int) -> list[Entry]:
        """The entries with higher sequence numbers than `after`, and from now on number behind them."""
        entries = [entry for file in self._files for entry in file.entries() if entry.sequence > after]
        entries.sort(key=lambda entry: entry.sequence)
        self._sequence = entries[-1].sequence if entries else after
        return entries

    def append(self, groups: Mapping[str, Offsets]) -> int:
        """Note the offsets; returns the sequence number."""
        file, sequence = self._files[self._current], self._sequence + 1
        try:
            file.append(encode(sequence, groups))
        except _NotUndone as error:
            self.broken = True
            raise _translated(error.reason) from error
        except OSError as error:
            raise _translated(error) from error
        self._sequence = file.last = sequence
        return sequence

    def turn(self) -> None:
        """Use the other file from now on, if nothing in it is needed any more."""
        if not self._files[1 - self._current].size:
            self._current = 1 - self._current

    def forget(self, sequence: int) -> None:
        """The catalog has everything up to here."""
        for file in self._files:
            if file.size and file.last <= sequence:
                with contextlib.suppress(OSError):  # then its entries are passed over by the next start
                    file.clear()

    def close(self) -> None:
        for file in self._files:
            file.close()


class _NotUndone(Exception):
    def __init__(self, reason: OSError) -> None:
        super().__init__(str(reason))
        self.reason = reason


class _File:
    def __init__(self, path: Path) -> None:
        self._fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        self.size = os.fstat(self._fd).st_size
        self.last = 0  # sequence number of the last entry

    def entries(self) -> list[Entry]:
        """All whole ones; what follows them is cut."""
        found, end = read_whole(os.pread(self._fd, self.size, 0))
        if found:
            self.last = found[-1].sequence
        if end < self.size:
            os.ftruncate(self._fd, end)
            self.size = end
        return found

    def append(self, entry: bytes) -> None:
        try:
            written = os.pwrite(self._fd, entry, self.size)
            while written < len(entry):
                written += os.pwrite(self._fd, entry[written:], self.size + written)
        except OSError as error:
            try:
                os.ftruncate(self._fd, self.size)
            except OSError as again:
                raise _NotUndone(again) from error
            raise
        self.size += written

    def clear(self) -> None:
        os.ftruncate(self._fd, 0)
        self.size = 0

    def close(self) -> None:
        os.close(self._fd)


def _translated(error: OSError) -> CatalogError:
    if error.errno in _FULL:
        return CatalogFull(f"offsets cannot be written: {error}")
    return CatalogError(f"offsets cannot be written: {error}")
