"""Looking at a partition's files without opening it as a log: for dump, verify and import.

Nothing is changed and nothing is trusted: every batch is checked, every index entry is held against the batch
that it points at.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from enum import Enum
from itertools import pairwise
from typing import NamedTuple

from kbroker.protocol.records import BatchHeader, RecordError, iter_records
from kbroker.storage import leader_epochs, names, producer_snapshot, transaction_index
from kbroker.storage.batch_scan import scan
from kbroker.storage.files import Files
from kbroker.storage.index import OFFSET_ENTRY, TIME_ENTRY
from kbroker.storage.partition_metadata import read_partition_metadata


class Damage(Enum):
    """What is wrong, by what can be done about it."""

    DERIVED = "derived"  # made again from the log: indexes, snapshots, epochs
    TAIL = "tail"  # the end of the last segment: what a crash leaves; cut at the next start
    RECORDS = "records"  # records that were whole once
    IDENTITY = "identity"  # whose the partition is


class Problem(NamedTuple):
    file: str
    damage: Damage
    text: str


@dataclass(slots=True)
class PartitionReport:
    directory: str
    topic_id: bytes | None = None
    segments: int = 0
    batches: int = 0
    size_bytes: int = 0
    start_offset: int = 0  # of the first segment
    end_offset: int = 0
    latest_epoch: int = -1
    problems: list[Problem] = field(default_factory=list)


def read_batches(files: Files, path: str) -> Iterator[tuple[int, BatchHeader, memoryview]]:
    """Position, header and bytes of each batch of a `.log`; RecordError where they end to be valid."""
    file = files.open(path)
    try:
        yield from scan(files, file, 0, files.size(file))
    finally:
        file.close()


def read_index(files: Files, path: str) -> list[tuple[int, int]]:
    """The entries of an `.index` or a `.timeindex`, without the zeros that end those of an active segment."""
    entry, column = (TIME_ENTRY, 0) if path.endswith(names.TIME_INDEX) else (OFFSET_ENTRY, 1)
    data = files.read_bytes(path)
    entries = list(entry.iter_unpack(data[: len(data) // entry.size * entry.size]))
    while entries and not entries[-1][column]:
        if column and len(entries) == 1 and entries[0][0]:
            break  # an entry for the first batch of the segment
        entries.pop()
    return entries


def inspect_partition(
    files: Files,
    directory: str,
    *,
    records: bool = False,
    progress: Callable[[int], None] = lambda _: None,
) -> PartitionReport:
    """Check everything in a partition's directory; ``records``: also every single record."""
    return _Inspection(files, directory, records, progress).run()


class _Inspection:
    def __init__(self, files: Files, directory: str, records: bool, progress: Callable[[int], None]) -> None:
        self._files = files
        self._directory = directory
        self._records = records
        self._progress = progress
        self._report = PartitionReport(directory)

    def run(self) -> PartitionReport:
        present = self._files.sizes(self._directory)
        offsets = sorted(
            offset for name in present if (offset := names.offset_of(name, names.LOG)) is not None
        )
        report = self._report
        report.segments = len(offsets)
        report.start_offset = report.end_offset = offsets[0] if offsets else 0
        self._check_identity()
        for number, base_offset in enumerate(offsets):
            if base_offset < report.end_offset:
                self._problem(
                    names.segment_file("", base_offset, names.LOG),
                    Damage.RECORDS,
                    f"the segment before it ends at offset {report.end_offset} already",
                )
            report.end_offset = max(report.end_offset, base_offset)
            self._check_segment(base_offset, present, last=number == len(offsets) - 1)
        self._check_snapshots(present)
        self._check_epochs(present)
        return report

    def _problem(self, name: str, damage: Damage, text: str) -> None:
        self._report.problems.append(Problem(name, damage, text))

    def _path(self, name: str) -> str:
        return os.path.join(self._directory, name)

    def _check_identity(self) -> None:
        name = names.PARTITION_METADATA
        try:
            self._report.topic_id = read_partition_metadata(self._files, self._directory)
        except (ValueError, KeyError) as error:
            self._problem(name, Damage.IDENTITY, f"it is unreadable: {error}")

    def _check_segment(self, base_offset: int, present: dict[str, int], *, last: bool) -> None:
        name = names.segment_file("", base_offset, names.LOG)
        offsets = self._index(base_offset, names.INDEX, present)
        times = self._index(base_offset, names.TIME_INDEX, present)
        checker = _IndexChecker(base_offset, offsets, times)
        position = 0
        try:
            for position, header, batch in read_batches(self._files, self._path(name)):
                self._check_batch(name, position, header, batch)
                checker.batch(position, header)
                self._report.end_offset = header.next_offset
                self._report.batches += 1
                self._report.latest_epoch = max(self._report.latest_epoch, header.partition_leader_epoch)
                self._progress(header.size_bytes)
                position += header.size_bytes
        except RecordError as error:
            tail = last and not self._valid_behind(name, position, present[name])
            self._problem(name, Damage.TAIL if tail else Damage.RECORDS, f"at position {position}: {error}")
        else:
            checker.end()
        self._report.size_bytes += present[name]
        for suffix, text in checker.problems:
            self._problem(names.segment_file("", base_offset, suffix), Damage.DERIVED, text)
        self._check_aborted(names.segment_file("", base_offset, names.TRANSACTION_INDEX), present)

    def _valid_behind(self, name: str, position: int, size: int) -> bool:
        """Whether a whole batch lies behind the one that is damaged, where that says it ends."""
        file = self._files.open(self._path(name))
        try:
            start = self._files.read_at(file, 12, position)
            if len(start) < 12:
                return False
            following = position + 12 + struct.unpack(">qi", start)[1]
            if not position < following < size:
                return False
            next(scan(self._files, file, following, size))
        except (RecordError, StopIteration):
            return False
        finally:
            file.close()
        return True

    def _check_batch(self, name: str, position: int, header: BatchHeader, batch: memoryview) -> None:
        if header.base_offset < self._report.end_offset:
            self._problem(
                name,
                Damage.RECORDS,
                f"at position {position}: offset {header.base_offset} where "
                f"{self._report.end_offset} or more is due",
            )
        if self._records:
            try:
                count = sum(1 for _ in iter_records(batch))
            except RecordError as error:
                self._problem(name, Damage.RECORDS, f"at position {position}: {error}")
                return
            if count != header.record_count:
                self._problem(
                    name,
                    Damage.RECORDS,
                    f"at position {position}: {count} records, not {header.record_count}",
                )

    def _index(self, base_offset: int, suffix: str, present: dict[str, int]) -> list[tuple[int, int]]:
        name = names.segment_file("", base_offset, suffix)
        entry = OFFSET_ENTRY if suffix == names.INDEX else TIME_ENTRY
        if name not in present:
            if present[names.segment_file("", base_offset, names.LOG)]:
                self._problem(name, Damage.DERIVED, "it is missing")
            return []
        if present[name] % entry.size:
            self._problem(name, Damage.DERIVED, f"its size, {present[name]}, is no multiple of {entry.size}")
        return read_index(self._files, self._path(name))

    def _check_aborted(self, name: str, present: dict[str, int]) -> None:
        if name in present:
            try:
                transaction_index.decode(self._files.read_bytes(self._path(name)))
            except ValueError as error:
                self._problem(name, Damage.DERIVED, str(error))

    def _check_snapshots(self, present: dict[str, int]) -> None:
        for name in sorted(present):
            if names.offset_of(name, names.SNAPSHOT) is not None:
                try:
                    producer_snapshot.decode(self._files.read_bytes(self._path(name)))
                except producer_snapshot.CorruptSnapshot as error:
                    self._problem(name, Damage.DERIVED, str(error))

    def _check_epochs(self, present: dict[str, int]) -> None:
        if names.LEADER_EPOCHS not in present:
            return
        try:
            epochs = leader_epochs.decode(self._files.read_bytes(self._path(names.LEADER_EPOCHS)))
        except ValueError as error:
            self._problem(names.LEADER_EPOCHS, Damage.DERIVED, f"it is unreadable: {error}")
            return
        self._report.latest_epoch = max(self._report.latest_epoch, epochs.latest)
        for epoch, start in epochs.entries():
            if start > self._report.end_offset:
                text = f"epoch {epoch} begins at offset {start}, the log ends at {self._report.end_offset}"
                self._problem(names.LEADER_EPOCHS, Damage.DERIVED, text)


class _IndexChecker:
    """Holds index entries against the batches as they come by."""

    def __init__(
        self, base_offset: int, offsets: list[tuple[int, int]], times: list[tuple[int, int]]
    ) -> None:
        self._base_offset = base_offset
        self._offsets = offsets
        self._times = times
        self._offset_slot = self._time_slot = 0
        self._max_timestamp = -1
        self.problems: list[tuple[str, str]] = []
        for suffix, entries in ((names.INDEX, offsets), (names.TIME_INDEX, times)):
            for before, after in pairwise(entries):
                if after[0] <= before[0] or after[1] < before[1]:
                    self._wrong(suffix, f"entry {after} comes after {before}")
                    break

    def _wrong(self, suffix: str, text: str) -> None:
        if not any(known == suffix for known, _ in self.problems):
            self.problems.append((suffix, text))

    def batch(self, position: int, header: BatchHeader) -> None:
        self._max_timestamp = max(self._max_timestamp, header.max_timestamp)
        while self._offset_slot < len(self._offsets) and self._offsets[self._offset_slot][1] <= position:
            relative, points_at = self._offsets[self._offset_slot]
            offset = self._base_offset + relative
            if points_at != position or not header.base_offset <= offset <= header.last_offset:
                self._wrong(names.INDEX, f"offset {offset} is not in a batch at position {points_at}")
            self._offset_slot += 1
        while self._time_slot < len(self._times):
            timestamp, relative = self._times[self._time_slot]
            if self._base_offset + relative > header.last_offset:
                break
            if timestamp > self._max_timestamp:
                self._wrong(
                    names.TIME_INDEX,
                    f"timestamp {timestamp} at offset {self._base_offset + relative}, where the largest "
                    f"is {self._max_timestamp}",
                )
            self._time_slot += 1

    def end(self) -> None:
        """No batch is left for the entries that are left."""
        if self._offset_slot < len(self._offsets):
            self._wrong(names.INDEX, f"{len(self._offsets) - self._offset_slot} entries point behind the log")
        if self._time_slot < len(self._times):
            self._wrong(
                names.TIME_INDEX, f"{len(self._times) - self._time_slot} entries point behind the log"
            )
