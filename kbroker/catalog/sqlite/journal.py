"""Changes, in a file until the database has them.

An entry is written behind the last one, which costs microseconds and outlives the process; so the change can
be answered at once, and the database takes many of them in one transaction later. Two files take turns: while
the database takes what one holds, new entries go to the other.

An entry: length and CRC-32 of what follows, a byte for the format, its sequence number, the change.
Sequence numbers grow by one; the database remembers up to which it has them, so nothing is applied twice.

A third, small file holds the number of the last entry, so that the next start misses those that are gone.

Invariants: an entry that was appended is read again, whole and in its order, by whoever opens the directory
next, or its loss is reported; one that could not be appended leaves nothing behind. A torn end is cut when it
is read; damage is passed over, and a copy of it is kept. Entries of another format are refused, and kept.
"""

from __future__ import annotations

import contextlib
import logging
import struct
import zlib
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from kbroker.catalog.errors import CatalogError, CatalogFull, CatalogTooNew
from kbroker.catalog.sqlite.file_names import last_name
from kbroker.storage.errors import shortage
from kbroker.storage.files import Files

logger = logging.getLogger("kbroker.catalog")

_HEAD = struct.Struct(">II")
_START = struct.Struct(">BQ")  # format, sequence number
_FORMAT = 2
_LAST = struct.Struct(">QQ")  # sequence number of the last entry, and its complement
_ALL_BITS = 2**64 - 1
_DAMAGED = ".damaged"


class Entry(NamedTuple):
    sequence: int
    payload: bytes


class Journal:
    def __init__(self, files: Files, directory: Path, names: Sequence[str]) -> None:
        """`names`: those of the two files."""
        self._files: list[_File] = []
        try:
            for name in names:
                self._files.append(_File(files, directory / name))
            self._last = _LastSequence(files, directory / last_name(names))
        except OSError as error:
            for file in self._files:
                file.close()
            raise _translated(error) from error
        self._current = 0
        self.lost = 0
        """How many entries were found to be gone."""
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
        lost = _missing((entry.sequence for entry in entries), after, self._last.read())
        if lost:
            self.lost += len(lost)
            logger.error(
                "%s: %s that had been acknowledged are gone, numbers %d to %d",
                " and ".join(file.name for file in self._files),
                f"{len(lost)} changes",
                lost[0],
                lost[-1],
            )
        return entries

    def append(self, payload: bytes) -> int:
        """Returns the sequence number."""
        file, sequence = self._files[self._current], self.sequence + 1
        body = _START.pack(_FORMAT, sequence) + payload
        try:
            file.append(_HEAD.pack(len(body), zlib.crc32(body)) + body)
        except _NotUndone as error:
            self.broken = True
            raise _translated(error.reason) from error
        except OSError as error:
            raise _translated(error) from error
        self.sequence = file.last = sequence
        self._last.write(sequence)
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
        self._last.close()


def check(files: Files, directory: Path, names: Sequence[str], after: int) -> list[tuple[str, str]]:
    """File and problem, of a journal that nobody has open; the catalog has its entries up to `after`."""
    found: list[tuple[str, str]] = []
    sequences: list[int] = []
    for name in names:
        try:
            entries, _, damaged = _whole_entries(_content(files, directory / name))
        except _OtherFormat as error:
            found.append((name, f"it has entries of format {error}"))
            continue
        sequences += [entry.sequence for entry in entries if entry.sequence > after]
        if damaged and any(entry.sequence > after for entry in entries):
            found.append((name, "it is damaged"))
    last = _read_last(_content(files, directory / last_name(names)))
    lost = _missing(sequences, after, last or 0)
    if lost:
        text = f"{len(lost)} changes that had been acknowledged are lost, numbers {lost[0]} to {lost[-1]}"
        found.append((names[0], text))
    return found


def _content(files: Files, path: Path) -> bytes:
    return files.read_bytes(str(path)) if files.exists(str(path)) else b""


def _missing(sequences: Iterable[int], after: int, last: int) -> list[int]:
    """The numbers that are not there, of those behind `after`."""
    there = set(sequences)
    return [number for number in range(after + 1, max(last, *there, after) + 1) if number not in there]


def _read_last(data: bytes) -> int | None:
    if len(data) != _LAST.size:
        return None
    sequence, complement = _LAST.unpack(data)
    return int(sequence) if sequence ^ complement == _ALL_BITS else None


class _LastSequence:
    """A number that outlives the process, in a file of its own."""

    def __init__(self, files: Files, path: Path) -> None:
        self._files = files
        self._file = files.open(str(path), write=True, create=True)

    def read(self) -> int:
        return _read_last(self._files.read_at(self._file, 64, 0)) or 0

    def write(self, sequence: int) -> None:
        try:
            self._files.write_at(self._file, _LAST.pack(sequence, sequence ^ _ALL_BITS), 0)
        except OSError as error:
            logger.debug("the last number cannot be written, so that less would be missed: %s", error)

    def close(self) -> None:
        self._file.close()


class _NotUndone(Exception):
    def __init__(self, reason: OSError) -> None:
        super().__init__(str(reason))
        self.reason = reason


class _OtherFormat(Exception):
    pass


class _File:
    def __init__(self, files: Files, path: Path) -> None:
        self._files = files
        self._path = path
        self.name = path.name
        self._file = files.open(str(path), write=True, create=True)
        self.size = files.size(self._file)
        self.last = 0  # sequence number of the last entry

    def entries(self) -> list[Entry]:
        """All whole ones; what follows them is cut."""
        try:
            data = self._files.read_at(self._file, self.size, 0) if self.size else b""
            found, end, damaged = _whole_entries(data)
        except _OtherFormat as error:
            raise CatalogTooNew(
                f"{self._path} has entries of format {error}, which another version of kbroker wrote: start "
                "and stop that one once, or remove the file, which gives up the last second before the crash"
            ) from None
        if found:
            self.last = found[-1].sequence
        if damaged:
            copy = self._path.with_name(self.name + _DAMAGED)
            self._files.write_bytes(str(copy), data, sync=False)
            logger.error(
                "%s is damaged: %d entries are whole; a copy is %s", self.name, len(found), copy.name
            )
        elif end < self.size:
            logger.warning("%s: cutting %d bytes of a torn entry", self.name, self.size - end)
        if end < self.size:
            self._files.truncate(self._file, end)
            self.size = end
        return found

    def append(self, entry: bytes) -> None:
        try:
            written = self._files.write_at(self._file, entry, self.size)
            while written < len(entry):
                written += self._files.write_at(self._file, entry[written:], self.size + written)
        except OSError as error:
            try:
                self._files.truncate(self._file, self.size)
            except OSError as again:
                raise _NotUndone(again) from error
            raise
        self.size += written

    def clear(self) -> None:
        self._files.truncate(self._file, 0)
        self.size = 0

    def close(self) -> None:
        self._file.close()


def _whole_entries(data: bytes) -> tuple[list[Entry], int, bool]:
    """All of them; where the last ends; and whether there is damage, rather than a torn end at most."""
    found: list[Entry] = []
    position = last_end = 0
    damaged = False
    while len(data) - position >= _HEAD.size:
        entry, end = _entry_at(data, position)
        if entry is None:
            following = _next_entry(data, position + 1)
            if following is None:
                # Zeros, or the beginning of an entry, is what a write leaves that was not finished.
                damaged |= bool(end) and end <= len(data)
                break
            damaged = True
            position = following
            continue
        if data[position + _HEAD.size] != _FORMAT:
            raise _OtherFormat(data[position + _HEAD.size])
        found.append(entry)
        position = last_end = end
    return found, last_end, damaged


def _entry_at(data: bytes, position: int) -> tuple[Entry | None, int]:
    """And where it says that it ends, 0 if it says nothing."""
    length, crc = _HEAD.unpack_from(data, position)
    start = position + _HEAD.size
    end = start + length if length else 0
    body = data[start:end]
    if len(body) < _START.size or len(body) < length or zlib.crc32(body) != crc:
        return None, end
    _, sequence = _START.unpack_from(body)
    return Entry(sequence, body[_START.size :]), end


def _next_entry(data: bytes, position: int) -> int | None:
    """Where the next whole entry of our format begins."""
    place = data.find(_FORMAT, position + _HEAD.size)
    while place >= 0:
        if _entry_at(data, place - _HEAD.size)[0] is not None:
            return place - _HEAD.size
        place = data.find(_FORMAT, place + 1)
    return None


def _translated(error: OSError) -> CatalogError:
    if shortage(error, "") is not None:
        return CatalogFull(f"the journal cannot be written: {error}")
    return CatalogError(f"the journal cannot be written: {error}")
