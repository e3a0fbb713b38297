"""Changes, noted in a file until the catalog has them.

An entry is written behind the last one, which costs microseconds and outlives the process; so what it notes
can be answered at once, and the catalog takes many of them in one transaction later. Two files take turns:
while the catalog takes what one holds, new entries go to the other.

An entry: length and CRC-32 of what follows, a byte for the format, its sequence number, what is noted.
Sequence numbers grow by one; the catalog remembers up to which it has them, so nothing is applied twice.

Invariants: an entry that was appended is read again, whole and in its order, by whoever opens the directory
next; one that could not be appended leaves nothing behind. A torn end is cut when it is read. Entries of
another format are refused, and kept.
"""

from __future__ import annotations

import contextlib
import os
import struct
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from kbroker.catalog.database import CatalogError, CatalogFull, CatalogTooNew
from kbroker.storage.errors import shortage

_HEAD = struct.Struct(">II")
_START = struct.Struct(">BQ")  # format, sequence number
_FORMAT = 2
_CLOSED = -1


class Entry(NamedTuple):
    sequence: int
    payload: bytes


class Journal:
    def __init__(self, directory: Path, names: Sequence[str]) -> None:
        """`names`: those of the two files."""
        self._files: list[_File] = []
        try:
            for name in names:
                self._files.append(_File(directory / name))
        except OSError as error:
            self.close()
            raise _translated(error) from error
        self._current = 0
        self.sequence = 0
        """That of the last entry."""
        self.broken = False
        """An append failed and could not be undone: nothing more is taken."""

    @property
    def size_bytes(self) -> int:
        return sum(file.size for file in self._files)

    def read(self, after: int) -> list[Entry]:
        """The entries with higher sequence numbers than `after`, and from now on number behind them."""
        entries = sorted(entry for file in self._files for entry in file.entries() if entry.sequence > after)
        self.sequence = entries[-1].sequence if entries else after
        return entries

    def append(self, payload: bytes) -> int:
        """Note this; returns the sequence number."""
        file, sequence = self._files[self._current], self.sequence + 1
        try:
            file.append(_encode(sequence, payload))
        except _NotUndone as error:
            self.broken = True
            raise _translated(error.reason) from error
        except OSError as error:
            raise _translated(error) from error
        self.sequence = file.last = sequence
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


class _OtherFormat(Exception):
    pass


class _File:
    def __init__(self, path: Path) -> None:
        self._path = path
        self._fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        self.size = os.fstat(self._fd).st_size
        self.last = 0  # sequence number of the last entry

    def entries(self) -> list[Entry]:
        """All whole ones; what follows them is cut."""
        try:
            found, end = _whole_entries(os.pread(self._fd, self.size, 0) if self.size else b"")
        except _OtherFormat as error:
            raise CatalogTooNew(
                f"{self._path} has entries of format {error}, which another version of kbroker wrote: start "
                "and stop that one once, or remove the file, which gives up the last second before the crash"
            ) from None
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
        if self._fd != _CLOSED:
            os.close(self._fd)
            self._fd = _CLOSED  # the number may soon be that of another file


def _encode(sequence: int, payload: bytes) -> bytes:
    body = _START.pack(_FORMAT, sequence) + payload
    return _HEAD.pack(len(body), zlib.crc32(body)) + body


def _whole_entries(data: bytes) -> tuple[list[Entry], int]:
    """And where the last of them ends."""
    found: list[Entry] = []
    position = 0
    while len(data) - position >= _HEAD.size:
        length, crc = _HEAD.unpack_from(data, position)
        body = data[position + _HEAD.size : position + _HEAD.size + length]
        if not length or len(body) < length or zlib.crc32(body) != crc:
            break
        if body[0] != _FORMAT:
            raise _OtherFormat(body[0])
        _, sequence = _START.unpack_from(body)
        found.append(Entry(sequence, body[_START.size :]))
        position += _HEAD.size + length
    return found, position


def _translated(error: OSError) -> CatalogError:
    if shortage(error, "") is not None:
        return CatalogFull(f"the journal cannot be written: {error}")
    return CatalogError(f"the journal cannot be written: {error}")
