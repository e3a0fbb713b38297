"""A file of lines that is rotated by size: name, name.1 (the one before), name.2, and so on.

It is opened for each write: a file that somebody moved away or deleted is made anew, and no descriptor is
held. A write that fails leaves no part of its lines behind. Writes must not overlap.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple


class Written(NamedTuple):
    """What became of a write."""

    lines: int  # so many of them are in files
    error: OSError | None


class AuditFile:
    def __init__(self, path: Path, max_bytes: int, backups: int) -> None:
        self._path = path
        self._max_bytes = max_bytes
        self._backups = backups

    def write(self, lines: Sequence[bytes]) -> Written:
        """Append them, in as many files as it takes."""
        written = 0
        try:
            while written < len(lines):
                written += self._write_some(lines, written)
        except OSError as error:
            return Written(written, error)
        return Written(written, None)

    def _write_some(self, lines: Sequence[bytes], first: int) -> int:
        """Lines from there on, as many as one file takes; how many."""
        descriptor = self._open()
        try:
            size = os.fstat(descriptor).st_size
            if size and size + len(lines[first]) > self._max_bytes:
                self._rotate()
                return 0
            fitting = self._fitting(lines, first, size)
            self._append(descriptor, b"".join(lines[first : first + fitting]), size)
            return fitting
        finally:
            os.close(descriptor)

    def _fitting(self, lines: Sequence[bytes], first: int, size: int) -> int:
        """How many of the lines from there on the file takes; one that is too long for any has its own."""
        count = 0
        for line in lines[first:]:
            size += len(line)
            if count and size > self._max_bytes:
                break
            count += 1
        return count

    def _open(self) -> int:
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC
        try:
            return os.open(self._path, flags, 0o600)
        except FileNotFoundError:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            return os.open(self._path, flags, 0o600)

    def _append(self, descriptor: int, data: bytes, size: int) -> None:
        view = memoryview(data)
        try:
            while view:
                view = view[os.write(descriptor, view) :]
        except OSError:
            with contextlib.suppress(OSError):
                os.ftruncate(descriptor, size)
            raise

    def _rotate(self) -> None:
        if not self._backups:
            self._path.unlink(missing_ok=True)
            return
        for number in range(self._backups - 1, 0, -1):
            with contextlib.suppress(FileNotFoundError):
                os.replace(self._backup(number), self._backup(number + 1))
        os.replace(self._path, self._backup(1))

    def _backup(self, number: int) -> Path:
        return self._path.with_name(f"{self._path.name}.{number}")
