"""The `.snapshot` files of a partition: at the start of every segment, and at its last recovery point.

They are kept in step with the log: none lies above its end, and of those between segments the newest stays.
"""

from __future__ import annotations

import logging
import os
from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterable

from kbroker.storage import names
from kbroker.storage.files import Files
from kbroker.storage.partition import producer_snapshot
from kbroker.storage.partition.producer_state import ProducerEntry

logger = logging.getLogger("kbroker.storage")


class Snapshots:
    def __init__(self, files: Files, directory: str, present: Iterable[str] = ()) -> None:
        self._files = files
        self._directory = directory
        self._offsets = sorted(
            offset for name in present if (offset := names.offset_of(name, names.SNAPSHOT)) is not None
        )

    def __contains__(self, offset: int) -> bool:
        return offset in self._offsets

    def path(self, offset: int) -> str:
        return names.segment_file(self._directory, offset, names.SNAPSHOT)

    def write(self, offset: int, entries: Iterable[ProducerEntry]) -> str:
        """The caller syncs the returned path."""
        path = self.path(offset)
        self._files.write_bytes(path, producer_snapshot.encode(entries), sync=False)
        if offset not in self._offsets:
            insort(self._offsets, offset)
        return path

    def newest(self, log_start_offset: int, limit: int) -> tuple[int, list[ProducerEntry]] | None:
        """The newest snapshot at or below `limit`; those that are unreadable are removed.

        One below the log start is of no use: what ended its transactions may have been deleted.
        """
        first = bisect_left(self._offsets, log_start_offset)
        for offset in reversed(self._offsets[first : bisect_right(self._offsets, limit)]):
            try:
                return offset, producer_snapshot.decode(self._files.read_bytes(self.path(offset)))
            except (producer_snapshot.CorruptSnapshot, FileNotFoundError) as error:
                logger.warning("removing %s: %s", self.path(offset), error)
                self._files.unlink_if_exists(self.path(offset))
                self._offsets.remove(offset)
        return None

    def remove_above(self, offset: int, *, keep: int = -1) -> None:
        """`keep`: the offset of one that stays."""
        for stale in [each for each in self._offsets if each > offset and each != keep]:
            self._files.unlink_if_exists(self.path(stale))
            self._offsets.remove(stale)

    def remove_strays(self, base_offsets: set[int], keep: int = 1) -> None:
        """Remove those that belong to no segment, but for the `keep` newest."""
        strays = [offset for offset in self._offsets if offset not in base_offsets]
        for stray in strays[: max(len(strays) - keep, 0)]:
            self._files.unlink_if_exists(self.path(stray))
            self._offsets.remove(stray)

    def mark_deleted(self, offset: int) -> str | None:
        """Rename the snapshot of a deleted segment; returns its new path."""
        if offset not in self._offsets:
            return None
        self._offsets.remove(offset)
        path = self.path(offset)
        target = path + names.DELETED
        try:
            self._files.rename(path, target)
        except FileNotFoundError:
            logger.info("%s was gone already", os.path.basename(path))
            return None
        return target
