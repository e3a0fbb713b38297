"""The sparse index files of a segment: `.index` (offset → position) and `.timeindex` (timestamp → offset).

Both are columns of two numbers that rise together, the offsets relative to the segment's base offset:

    .index      relative offset int32, position int32    the last offset of a batch; where the batch starts
    .timeindex  timestamp int64, relative offset int32   the largest so far; the last offset of its batch

New entries stay in memory until `persist` appends them to the file. What is on disk is searched there, by
a few small reads; nothing of it is kept in memory. What a crash takes, recovery makes again.
"""

from __future__ import annotations

import struct
from array import array
from bisect import bisect_right
from collections.abc import Callable
from typing import Final

from kbroker.storage.files import Files, WouldBlock
from kbroker.storage.interface import Buffer
from kbroker.storage.segments.descriptors import Descriptors, LazyFile

_BLOCK_ENTRIES = 512

OFFSET_ENTRY: Final = struct.Struct(">II")
TIME_ENTRY: Final = struct.Struct(">qI")


class Index:
    __slots__ = (
        "_descriptors",
        "_disk_entries",
        "_entry",
        "_files",
        "_keys",
        "_values",
        "file",
    )

    def __init__(self, files: Files, descriptors: Descriptors, path: str, entry: struct.Struct) -> None:
        self._files = files
        self._descriptors = descriptors
        self._entry = entry
        self.file = LazyFile(path)
        self._disk_entries = 0
        self._keys = array("q" if entry is TIME_ENTRY else "I")
        self._values = array("I")

    def __len__(self) -> int:
        return self._disk_entries + len(self._keys)

    @property
    def size_bytes(self) -> int:
        return len(self) * self._entry.size

    @property
    def entry_bytes(self) -> int:
        return self._entry.size

    def append(self, key: int, value: int) -> None:
        self._keys.append(key)
        self._values.append(value)

    def use_disk(self, entries: int) -> None:
        """The first `entries` entries of the file are right; there are no others."""
        self._disk_entries = entries
        del self._keys[:], self._values[:]

    # searching

    def floor(self, key: int, *, wait: bool) -> tuple[int, int] | None:
        """The last entry with a key at or below `key`."""
        return self._floor(key, 0, self._keys, wait)

    def floor_by_value(self, value: int, *, wait: bool) -> tuple[int, int] | None:
        """The last entry with a value at or below `value`."""
        return self._floor(value, 1, self._values, wait)

    def last(self, *, wait: bool) -> tuple[int, int] | None:
        if self._keys:
            return self._keys[-1], self._values[-1]
        return self._on_disk(self._disk_entries - 1, wait) if self._disk_entries else None

    def entry(self, slot: int) -> tuple[int, int] | None:
        if slot < self._disk_entries:
            return self._on_disk(slot, True)
        slot -= self._disk_entries
        return (self._keys[slot], self._values[slot]) if slot < len(self._keys) else None

    def _floor(self, target: int, column: int, recent: array[int], wait: bool) -> tuple[int, int] | None:
        if recent and target >= recent[0]:
            slot = bisect_right(recent, target) - 1
            return self._keys[slot], self._values[slot]
        low, high = 0, self._disk_entries  # the answer is below `high`; `low` counts entries known not above
        while high - low > _BLOCK_ENTRIES:
            middle = (low + high) // 2
            if self._on_disk(middle, wait)[column] <= target:
                low = middle
            else:
                high = middle
        block, size, unpack = self._read(low, high - low, wait), self._entry.size, self._entry.unpack_from
        slot = (
            bisect_right(range(high - low), target, key=lambda slot: unpack(block, slot * size)[column]) - 1
        )
        return unpack(block, slot * size) if slot >= 0 else None

    def _on_disk(self, slot: int, wait: bool) -> tuple[int, int]:
        return self._entry.unpack_from(self._read(slot, 1, wait))

    def _read(self, slot: int, count: int, wait: bool) -> Buffer:
        if not count:
            return b""
        size = self._entry.size
        handle = self._descriptors.open(self.file)
        read: Callable[..., Buffer] = self._files.read_at if wait else self._files.read_cached
        data = read(handle, count * size, slot * size)
        if len(data) < count * size:
            if not wait:
                raise WouldBlock(handle, count * size, slot * size)
            raise EOFError(f"{self.file.path} has fewer than {slot + count} entries")
        return data

    # changing what is on disk

    def persist(self) -> bool:
        """Append to the file what is not there yet; returns whether it was changed."""
        return self._append_entries() if self._keys else False

    def complete(self) -> bool:
        """The same of an index that ends: there is a file then, even if it is empty."""
        return False if not self._keys and self._files.exists(self.file.path) else self._append_entries()

    def _append_entries(self) -> bool:
        count = len(self._keys)
        data = b"".join(map(self._entry.pack, self._keys, self._values))
        handle = self._descriptors.open(self.file, create=True)
        self._files.write_all(handle, data, self._disk_entries * self._entry.size)
        self._disk_entries += count
        del self._keys[:count], self._values[:count]
        return True

    def truncate(self, entries: int) -> None:
        """Keep the first `entries`, on disk and in memory; what else the file held is cut."""
        if entries >= self._disk_entries:
            keep = entries - self._disk_entries
            del self._keys[keep:], self._values[keep:]
        else:
            del self._keys[:], self._values[:]
            self._disk_entries = entries
        if self._files.exists(self.file.path):
            self._files.truncate(self._descriptors.open(self.file), self._disk_entries * self._entry.size)

    def count_below(self, column: int, limit: int) -> int:
        """How many entries lie below `limit`: in the first column for 0, in the second for 1."""
        recent = self._values if column else self._keys
        low, high = 0, len(self)
        while low < high:
            middle = (low + high) // 2
            if middle >= self._disk_entries:
                number = recent[middle - self._disk_entries]
            else:
                number = self._on_disk(middle, True)[column]
            if number < limit:
                low = middle + 1
            else:
                high = middle
        return low
