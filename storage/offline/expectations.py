"""What the checkpoints of a data directory say of its partitions, whatever their files say."""

from __future__ import annotations

import os
from dataclasses import dataclass

from kbroker.storage import names
from kbroker.storage.durability import checkpoints
from kbroker.storage.files import Files

Key = tuple[str, int]


@dataclass(frozen=True, slots=True)
class Expected:
    """Of one partition; None: not known."""

    clean: bool = False  # it was closed: there is no torn end, and nothing derived is missing
    start_offset: int | None = None
    end_offset: int | None = None  # everything below it must be there
    compacted_offset: int | None = None  # below it offsets may be missing; None: anywhere
    all_written: bool = False  # nothing that was written can be missing: the machine did not go down


class Expectations:
    def __init__(self, files: Files, directory: str) -> None:
        self.clean = files.exists(os.path.join(directory, names.CLEAN_SHUTDOWN))
        self.all_written = self.clean or _same_boot(files, directory)
        self.unreadable: dict[str, str] = {}  # checkpoints, and why
        self._files = files
        self._directory = directory
        self._recovery_points = self._read(names.RECOVERY_POINTS)
        self._high_watermarks = self._read(names.HIGH_WATERMARKS)
        self._log_starts = self._read(names.LOG_STARTS)
        self._cleaner_offsets = self._read(names.CLEANER_OFFSETS)
        self._compacted_offsets = self._read(names.COMPACTED_OFFSETS)

    def _read(self, name: str) -> checkpoints.Offsets:
        read = checkpoints.read_checked if name == names.COMPACTED_OFFSETS else checkpoints.read
        try:
            return read(self._files, self._directory, name)
        except ValueError as error:
            self.unreadable[name] = str(error)
            return {}

    def of(self, key: Key) -> Expected:
        start_offset, end_offset = self._log_starts.get(key), self.end_of(key)
        return Expected(self.clean, start_offset, end_offset, self._compacted(key), self.all_written)

    def end_of(self, key: Key) -> int | None:
        """Of two witnesses who disagree the lower one claims less; only a clean stop makes them equal."""
        ends = [self._recovery_points.get(key)]
        if self.clean:
            ends.append(self._high_watermarks.get(key))
        return min((end for end in ends if end is not None), default=None)

    def _compacted(self, key: Key) -> int | None:
        if key in self._cleaner_offsets and key not in self._compacted_offsets:
            return None
        return self._compacted_offsets.get(key, 0)

    def with_records(self) -> list[Key]:
        """The partitions that had records."""
        return [
            key for key in self._recovery_points if (self.end_of(key) or 0) > self._log_starts.get(key, 0)
        ]


def _same_boot(files: Files, directory: str) -> bool:
    """Whether the last user of a directory ran since the machine came up."""
    try:
        note = files.read_bytes(os.path.join(directory, names.LOCK)).decode(errors="replace")
    except FileNotFoundError:
        return False
    return bool(note) and note == files.boot_id()
