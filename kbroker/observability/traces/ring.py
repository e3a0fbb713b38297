"""The ring: entries of any size in a mapped file of a fixed one, where new ones take the place of the oldest.

Layout: a page with magic, capacity, head and tail, then the entries. Positions only grow; where one lies in
the file is its remainder by the capacity. An entry: size with this head (a multiple of 8), CRC-32 of the
rest, length of the data, data. One that would not fit before the end of the file begins at its start: a size
of FILLER says so.

Invariants:
- Tail ≤ every entry < head. The tail moves on before an entry is overwritten, the head after one is written:
  what the process was killed in the middle of is not there. What a power loss took, the CRCs find.
- The whole file has its blocks before it is mapped: writing to it cannot fail for want of room.
"""

from __future__ import annotations

import mmap
import os
import struct
import tempfile
from collections.abc import Iterator
from typing import Final
from zlib import crc32

_MAGIC: Final = b"kbtrace1"
_PAGE: Final = 4096
_AT_A_TIME: Final = 1 << 20
_CAPACITY = struct.Struct(">8sQ")
_HEAD_AT, _TAIL_AT = 16, 24
_LONG = struct.Struct(">Q")
_ENTRY = struct.Struct(">III")  # size, CRC, length of the data
_SIZE = struct.Struct(">I")
_FILLER = 0xFFFFFFFF


class Ring:
    def __init__(self, descriptor: int, capacity: int) -> None:
        """A file of ``capacity`` and a page more, which can be closed; -1: there is none, only memory."""
        self.capacity = capacity
        self._map = mmap.mmap(descriptor, capacity + _PAGE)
        if _CAPACITY.unpack_from(self._map) != (_MAGIC, capacity):
            _LONG.pack_into(self._map, _HEAD_AT, 0)
            _LONG.pack_into(self._map, _TAIL_AT, 0)
            _CAPACITY.pack_into(self._map, 0, _MAGIC, capacity)
        self.head: int = _LONG.unpack_from(self._map, _HEAD_AT)[0]
        self.tail: int = _LONG.unpack_from(self._map, _TAIL_AT)[0]
        if not 0 <= self.head - self.tail <= capacity or self.head % 8 or self.tail % 8:
            self.clear()

    @classmethod
    def open(cls, path: str | None, size_bytes: int) -> Ring:
        """``path``: None: a file that has no name. Raises OSError if there is no room for it."""
        capacity = size_bytes // _PAGE * _PAGE
        if path is None:
            with tempfile.TemporaryFile() as file:
                os.posix_fallocate(file.fileno(), 0, capacity + _PAGE)
                return cls(file.fileno(), capacity)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            if os.fstat(descriptor).st_size != capacity + _PAGE:
                os.ftruncate(descriptor, 0)
            os.posix_fallocate(descriptor, 0, capacity + _PAGE)
            while os.read(descriptor, _AT_A_TIME):  # into the page cache: nobody is to wait for it later
                pass
            return cls(descriptor, capacity)
        except OSError:
            os.ftruncate(descriptor, 0)
            raise
        finally:
            os.close(descriptor)

    @classmethod
    def in_memory(cls, size_bytes: int) -> Ring:
        return cls(-1, size_bytes // _PAGE * _PAGE)

    def append(self, data: bytes) -> int:
        """Returns its position. Of data that is larger than a quarter of the ring nothing is kept: -1."""
        size = (_ENTRY.size + len(data) + 7) // 8 * 8
        if size > self.capacity // 4:
            return -1
        position = self.head
        left = self.capacity - position % self.capacity
        skipped = left if left < size else 0
        self._make_room(position + skipped + size)
        if skipped:
            _SIZE.pack_into(self._map, self._at(position), _FILLER)
            position += skipped
        at = self._at(position)
        _ENTRY.pack_into(self._map, at, size, crc32(data), len(data))
        self._map[at + _ENTRY.size : at + _ENTRY.size + len(data)] = data
        self.head = position + size
        _LONG.pack_into(self._map, _HEAD_AT, self.head)
        return position

    def read(self, position: int) -> bytes | None:
        """The data of an entry; None: it was overwritten."""
        if not self.tail <= position < self.head:
            return None
        at = self._at(position) + _ENTRY.size
        length = _ENTRY.unpack_from(self._map, at - _ENTRY.size)[2]
        return self._map[at : at + length]

    def entries(self, position: int = 0) -> Iterator[tuple[int, bytes]]:
        """From there on, with their positions, oldest first. Others may append in between."""
        while (position := max(position, self.tail)) < self.head:
            at = self._at(position)
            if _SIZE.unpack_from(self._map, at)[0] == _FILLER:
                position += self._left(position)
                continue
            size, _, length = _ENTRY.unpack_from(self._map, at)
            yield position, self._map[at + _ENTRY.size : at + _ENTRY.size + length]
            position += size

    def verified(self) -> Iterator[tuple[int, bytes]]:
        """The same after a start: what comes behind an entry that is damaged is given up."""
        position = self.tail
        while position < self.head:
            at = self._at(position)
            if _SIZE.unpack_from(self._map, at)[0] == _FILLER:
                position += self._left(position)
                continue
            if self._left(position) < _ENTRY.size:
                break
            size, crc, length = _ENTRY.unpack_from(self._map, at)
            data = self._map[at + _ENTRY.size : at + _ENTRY.size + length]
            if (
                size != (_ENTRY.size + length + 7) // 8 * 8
                or size > min(self._left(position), self.head - position)
                or crc32(data) != crc
            ):
                break
            yield position, data
            position += size
        if position != self.head:
            self.head = position = min(position, self.head)
            _LONG.pack_into(self._map, _HEAD_AT, position)

    def clear(self) -> None:
        self.head = self.tail = 0
        _LONG.pack_into(self._map, _TAIL_AT, 0)
        _LONG.pack_into(self._map, _HEAD_AT, 0)

    def close(self) -> None:
        self._map.close()

    def _make_room(self, head: int) -> None:
        tail = self.tail
        while head - tail > self.capacity:
            (size,) = _SIZE.unpack_from(self._map, self._at(tail))
            tail += self._left(tail) if size == _FILLER else size
        if tail != self.tail:
            self.tail = tail
            _LONG.pack_into(self._map, _TAIL_AT, tail)

    def _at(self, position: int) -> int:
        return _PAGE + position % self.capacity

    def _left(self, position: int) -> int:
        return self.capacity - position % self.capacity
