"""Looking at a partition's files without opening it as a log: for dump, verify and import.

Nothing is changed and nothing is trusted: every batch is checked, every index entry is held against the batch
that it points at, and the whole against what the checkpoints say of it. What is normal after a stop that was
not clean, and is put in order by the next start, is a note and no problem.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from enum import Enum
from itertools import pairwise
from typing import NamedTuple

from kbroker.protocol.records import BatchHeader, RecordError, iter_records
from kbroker.storage import names
from kbroker.storage.files import Files, OpenFile
from kbroker.storage.offline.expectations import Expected
from kbroker.storage.partition import leader_epochs, producer_snapshot, transaction_index
from kbroker.storage.partition_metadata import read_partition_metadata
from kbroker.storage.recovery.batch_scan import scan
from kbroker.storage.recovery.damage import offsets_at
from kbroker.storage.recovery.walk import Batch, Lost, Tail, walk
from kbroker.storage.segments.index import OFFSET_ENTRY, TIME_ENTRY


class Damage(Enum):
    """What is wrong, by what can be done about it."""

    DERIVED = "derived"  # made again from the log: indexes, snapshots, epochs
    TAIL = "tail"  # the end of the last segment: cut at the next start
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
    latest_producer_id: int = -1
    problems: list[Problem] = field(default_factory=list)
    notes: list[Problem] = field(default_factory=list)
    last_gap: int = 0  # where the last batch begins before which offsets are missing


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
    expected: Expected | None = None,
    records: bool = False,
    progress: Callable[[int], None] = lambda _: None,
) -> PartitionReport:
    """Check everything in a partition's directory; ``records``: also every single record.

    ``expected``: what else is known of it; else gaps between offsets are no problem.
    """
    return _Inspection(files, directory, expected or Expected(clean=True), records, progress).run()


class _Inspection:
    def __init__(
        self,
        files: Files,
        directory: str,
        expected: Expected,
        records: bool,
        progress: Callable[[int], None],
    ) -> None:
        self._files = files
        self._directory = directory
        self._expected = expected
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
        report.start_offset = report.end_offset = offsets[0] if offsets else self._expected.start_offset or 0
        self._check_identity()
        self._check_start(present)
        for base_offset, following in pairwise([*offsets, None]):
            assert base_offset is not None
            if base_offset < report.end_offset:
                self._problem(
                    names.segment_file("", base_offset, names.LOG),
                    Damage.RECORDS,
                    f"the segment before it ends at offset {report.end_offset} already",
                )
            report.end_offset = max(report.end_offset, base_offset)
            self._check_segment(base_offset, present, following)
        self._check_end()
        self._check_snapshots(present)
        self._check_epochs(present)
        return report

    def _problem(self, name: str, damage: Damage, text: str) -> None:
        self._report.problems.append(Problem(name, damage, text))

    def _derived(self, name: str, text: str) -> None:
        """Something derived is missing or cut short: it is not written at once."""
        found = self._report.problems if self._expected.clean else self._report.notes
        found.append(Problem(name, Damage.DERIVED, text))

    def _lost(self, name: str, first_offset: int, next_offset: int, text: str) -> None:
        first_offset = max(first_offset, self._expected.start_offset or 0)
        if first_offset < next_offset:
            text = f"offsets {first_offset} to {next_offset - 1} are lost: {text}"
            self._problem(name, Damage.RECORDS, text)

    def _check_start(self, present: dict[str, int]) -> None:
        """Nobody removes the first segment without leaving word of it, nor a log file before its indexes."""
        known, first = self._expected.start_offset, self._report.start_offset
        being_deleted = any(name.endswith(names.LOG + names.DELETED) for name in present)
        indexes = [offset for name in present if (offset := names.offset_of(name, names.INDEX)) is not None]
        expected = min(indexes, default=first) if known is None else known
        if self._report.segments and expected < first and (self._expected.clean or not being_deleted):
            name = names.segment_file("", expected, names.LOG)
            self._lost(name, expected, first, "it is missing")

    def _check_end(self) -> None:
        expected, end_offset = self._expected.end_offset, self._report.end_offset
        if expected is not None and end_offset < expected:
            self._lost("-", end_offset, expected, "the log ends before them")
            self._report.end_offset = expected

    def _path(self, name: str) -> str:
        return os.path.join(self._directory, name)

    def _check_identity(self) -> None:
        name = names.PARTITION_METADATA
        try:
            self._report.topic_id = read_partition_metadata(self._files, self._directory)
        except (ValueError, KeyError) as error:
            self._problem(name, Damage.IDENTITY, f"it is unreadable: {error}")

    def _check_segment(self, base_offset: int, present: dict[str, int], following: int | None) -> None:
        report = self._report
        name = names.segment_file("", base_offset, names.LOG)
        offsets = self._index(base_offset, names.INDEX, present)
        times = self._index(base_offset, names.TIME_INDEX, present)
        checker = _IndexChecker(base_offset, offsets, times)
        compacted_offset = self._expected.compacted_offset
        whole = True
        file = self._files.open(self._path(name))
        try:
            for event in walk(
                self._files,
                file,
                present[name],
                0,
                report.end_offset,
                limit=following,
                compacted_offset=2**63 if compacted_offset is None else compacted_offset,
            ):
                if isinstance(event, Batch):
                    position, header, batch = event
                    self._check_batch(name, position, header, batch)
                    checker.batch(position, header)
                    if header.base_offset > report.end_offset:
                        report.last_gap = header.base_offset
                    report.end_offset = header.next_offset
                    report.batches += 1
                    report.latest_epoch = max(report.latest_epoch, header.partition_leader_epoch)
                    report.latest_producer_id = max(report.latest_producer_id, header.producer_id)
                    self._progress(header.size_bytes)
                    continue
                whole = False
                if isinstance(event, Lost):
                    place = f"at position {event.damage.start}: {event.reason}"
                    self._lost(name, event.expected, event.damage.next_offset, place)
                    checker.damage(event.damage.end, event.damage.next_offset)
                    report.end_offset = event.damage.next_offset
                else:
                    self._check_tail(name, file, present[name], event)
        finally:
            file.close()
        if whole:
            checker.end()
        report.size_bytes += present[name]
        for suffix, text in checker.problems:
            self._problem(names.segment_file("", base_offset, suffix), Damage.DERIVED, text)
        self._check_aborted(names.segment_file("", base_offset, names.TRANSACTION_INDEX), present)

    def _check_tail(self, name: str, file: OpenFile, size_bytes: int, tail: Tail) -> None:
        """Damage with nothing behind it: what a crash leaves, unless it was whole once."""
        clean, end_offset = self._expected.clean, self._expected.end_offset or 0
        if self._expected.all_written:
            count = offsets_at(self._files, file, size_bytes, tail.position, tail.expected)
            end_offset = max(end_offset, tail.expected + count if count else 0)
        text = f"at position {tail.position}: {tail.reason}"
        if tail.expected < end_offset:
            text = f"offsets {tail.expected} to {end_offset - 1} are lost: {text}"
            self._problem(name, Damage.TAIL if clean else Damage.RECORDS, text)
            self._report.end_offset = end_offset
        else:
            found = self._report.problems if clean else self._report.notes
            found.append(Problem(name, Damage.TAIL, text))

    def _check_batch(self, name: str, position: int, header: BatchHeader, batch: memoryview) -> None:
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
                self._derived(name, "it is missing")
            return []
        if present[name] % entry.size:
            self._derived(name, f"its size, {present[name]}, is no multiple of {entry.size}")
        return read_index(self._files, self._path(name))

    def _check_aborted(self, name: str, present: dict[str, int]) -> None:
        if name in present:
            try:
                transaction_index.decode(self._files.read_bytes(self._path(name)))
            except ValueError as error:
                self._derived(name, str(error))

    def _check_snapshots(self, present: dict[str, int]) -> None:
        for name in sorted(present):
            if names.offset_of(name, names.SNAPSHOT) is not None:
                try:
                    producer_snapshot.decode(self._files.read_bytes(self._path(name)))
                except producer_snapshot.CorruptSnapshot as error:
                    self._derived(name, str(error))

    def _check_epochs(self, present: dict[str, int]) -> None:
        if names.LEADER_EPOCHS not in present:
            return
        try:
            epochs = leader_epochs.decode(self._files.read_bytes(self._path(names.LEADER_EPOCHS)))
        except ValueError as error:
            self._derived(names.LEADER_EPOCHS, f"it is unreadable: {error}")
            return
        self._report.latest_epoch = max(self._report.latest_epoch, epochs.latest)
        for epoch, start in epochs.entries():
            if start > self._report.end_offset:
                text = f"epoch {epoch} begins at offset {start}, the log ends at {self._report.end_offset}"
                self._derived(names.LEADER_EPOCHS, text)


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

    def damage(self, position: int, next_offset: int) -> None:
        """Of what is damaged up to here nothing can be said."""
        while self._offset_slot < len(self._offsets) and self._offsets[self._offset_slot][1] < position:
            self._offset_slot += 1
        while self._time_slot < len(self._times):
            if self._base_offset + self._times[self._time_slot][1] >= next_offset:
                break
            self._time_slot += 1
            self._max_timestamp = max(self._max_timestamp, self._times[self._time_slot - 1][0])

    def end(self) -> None:
        """No batch is left for the entries that are left."""
        if self._offset_slot < len(self._offsets):
            self._wrong(names.INDEX, f"{len(self._offsets) - self._offset_slot} entries point behind the log")
        if self._time_slot < len(self._times):
            self._wrong(
                names.TIME_INDEX, f"{len(self._times) - self._time_slot} entries point behind the log"
            )
