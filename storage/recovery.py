"""Opening the directory of a partition: finding its segments, its end, its producers and its epochs.

After a clean stop nothing is scanned: the end is walked to from the last index entry, the producers come from
their snapshot. After an unclean one every batch from the recovery point on is checked; at the first that is
not whole and valid the log is cut, and what follows from it (indexes, producers, epochs) is made again. What
was below the recovery point was on disk once: damage there is reported and kept apart, not cut.

This is right because a recovery point is only published once the `.log` and everything derived from it are on
disk up to there (log.py, `checkpoint`).
"""

from __future__ import annotations

import contextlib
import logging
import os
from collections.abc import Callable
from dataclasses import dataclass, field

from kbroker.protocol.records import BatchHeader, RecordError
from kbroker.storage import leader_epochs, names
from kbroker.storage.batch_scan import CHUNK_BYTES, scan
from kbroker.storage.compaction import leftovers
from kbroker.storage.damage import damage_at
from kbroker.storage.descriptors import Descriptors
from kbroker.storage.errors import StorageError
from kbroker.storage.file_segment import FileSegment
from kbroker.storage.files import TEMPORARY_SUFFIX, Files
from kbroker.storage.index import Index
from kbroker.storage.leader_epochs import LeaderEpochs
from kbroker.storage.log_reader import LogReader
from kbroker.storage.producer_state import ProducerStates
from kbroker.storage.snapshots import Snapshots

logger = logging.getLogger("kbroker.storage")


@dataclass(slots=True)
class Loaded:
    """What was found in a partition's directory."""

    snapshots: Snapshots
    segments: list[FileSegment] = field(default_factory=list)
    log_start_offset: int = 0
    log_end_offset: int = 0
    producers: ProducerStates = field(default_factory=ProducerStates)
    epochs: LeaderEpochs = field(default_factory=LeaderEpochs)
    cut_bytes: int = 0
    unpersisted: list[FileSegment] = field(default_factory=list)  # ended, with indexes that are not on disk


@dataclass(frozen=True, slots=True)
class LoadOptions:
    clean: bool
    recovery_point: int
    log_start_offset: int  # as last checkpointed
    compacted_offset: int  # below it, and below the recovery point, offsets may be missing
    now_ms: int
    producer_id_expiration_ms: int
    index_interval_bytes: int


def load(
    files: Files,
    descriptors: Descriptors,
    directory: str,
    options: LoadOptions,
    failed: Callable[[OSError], StorageError],
) -> Loaded:
    return _Loader(files, descriptors, directory, options, failed).load()


class _Loader:
    def __init__(
        self,
        files: Files,
        descriptors: Descriptors,
        directory: str,
        options: LoadOptions,
        failed: Callable[[OSError], StorageError],
    ) -> None:
        self._files = files
        self._descriptors = descriptors
        self._directory = directory
        self._options = options
        self._failed = failed
        self._name = os.path.basename(directory)
        self._epochs_known = False  # up to where scanning began
        self._scanned = False
        self._loaded = Loaded(Snapshots(files, directory))
        self._reader = LogReader(files, report=False)

    def load(self) -> Loaded:
        loaded = self._loaded
        present = self._present_files()
        loaded.segments = self._make_segments(present)
        loaded.epochs = self._read_epochs(present)
        loaded.snapshots = Snapshots(self._files, self._directory, present)
        first = loaded.segments[0].base_offset if loaded.segments else 0
        loaded.log_start_offset = max(self._options.log_start_offset, first)
        if not loaded.segments:
            loaded.log_end_offset = loaded.log_start_offset
            loaded.producers.end_offset = loaded.log_end_offset
            return loaded
        try:
            if self._options.clean:
                self._replay(self._find_end())
            elif self._untouched_since(self._options.recovery_point):
                self._replay(self._options.recovery_point)
            else:
                self._recover(self._options.recovery_point)
        except (RecordError, EOFError, ValueError) as error:
            logger.warning("%s: its files do not agree (%s): checking all of it", self._name, error)
            loaded.producers = ProducerStates()
            for segment in loaded.segments:
                segment.reset_aborted()
            self._recover(0)
        self._settle()
        return loaded

    # what is there

    def _present_files(self) -> dict[str, int]:
        """The files and their sizes, once what a crash left half done is settled."""
        present = self._files.sizes(self._directory)
        for name in sorted(present):
            if name.endswith((names.DELETED, TEMPORARY_SUFFIX)):
                self._remove(name)
                del present[name]
        if any(name.endswith((names.CLEANED, names.SWAP)) for name in present):
            leftovers.settle(self._files, self._directory, set(present))
            present = self._files.sizes(self._directory)
        return present

    def _make_segments(self, present: dict[str, int]) -> list[FileSegment]:
        offsets = sorted(
            offset for name in present if (offset := names.offset_of(name, names.LOG)) is not None
        )
        segments = []
        for base_offset in offsets:
            segment = FileSegment(
                self._files,
                self._descriptors,
                self._directory,
                base_offset,
                created_ms=self._options.now_ms,
                index_interval_bytes=self._options.index_interval_bytes,
                failed=self._failed,
            )
            stem = f"{base_offset:020d}"
            segment.size_bytes = present[stem + names.LOG]
            for index, suffix in ((segment.index, names.INDEX), (segment.time_index, names.TIME_INDEX)):
                index.use_disk(present.get(stem + suffix, 0) // index.entry_bytes)
            if stem + names.TRANSACTION_INDEX in present:
                segment.expect_aborted_on_disk()
            segment.forget_timestamps()
            segments.append(segment)
        if segments:
            # Kafka's active segment has indexes that end in zeros.
            _drop_zeros(segments[-1].index, column=1)
            _drop_zeros(segments[-1].time_index, column=0)
        for name in present:
            for suffix in (names.INDEX, names.TIME_INDEX, names.TRANSACTION_INDEX):
                offset = names.offset_of(name, suffix)
                if offset is not None and f"{offset:020d}{names.LOG}" not in present:
                    logger.warning("%s: removing %s, which has no log file", self._name, name)
                    self._remove(name)
        return segments

    def _read_epochs(self, present: dict[str, int]) -> LeaderEpochs:
        if names.LEADER_EPOCHS in present:
            data = self._files.read_bytes(os.path.join(self._directory, names.LEADER_EPOCHS))
            try:
                epochs = leader_epochs.decode(data)
                self._epochs_known = True
                return epochs
            except ValueError as error:
                logger.warning("%s: the leader epoch checkpoint is unreadable: %s", self._name, error)
        return LeaderEpochs()

    # after a clean stop

    def _find_end(self) -> int:
        """Walk from the last index entry to the end of the last segment."""
        segment = self._loaded.segments[-1]
        entry = segment.index.last(wait=True)
        start = entry[1] if entry is not None else 0
        end_offset = segment.base_offset
        last: BatchHeader | None = None
        segment.load_timestamps()
        for _, header in self._reader.headers(segment, start, segment.size_bytes, wait=True):
            if header.base_offset < end_offset:
                raise ValueError(f"offset {header.base_offset} where {end_offset} is due")
            end_offset = header.next_offset
            if header.max_timestamp > segment.max_timestamp:
                segment.max_timestamp = header.max_timestamp
                segment.max_timestamp_offset = header.last_offset
            last = header
        if last is not None:
            self._check_epochs(last, first=False)
        self._loaded.log_end_offset = end_offset
        return end_offset

    def _untouched_since(self, recovery_point: int) -> bool:
        """Whether nothing was appended since the recovery point: nothing is to be checked or made again."""
        segment, epochs_known = self._loaded.segments[-1], self._epochs_known
        entry = segment.index.last(wait=True)
        if not recovery_point or segment.size_bytes - (entry[1] if entry else 0) > CHUNK_BYTES:
            return False
        with contextlib.suppress(RecordError, EOFError, ValueError):
            if self._find_end() == recovery_point and recovery_point in self._loaded.snapshots:
                return True
        segment.forget_timestamps()
        self._epochs_known = epochs_known
        return False

    def _replay(self, end_offset: int) -> None:
        loaded = self._loaded
        # Whoever stopped cleanly without leaving a snapshot had no producer state to keep.
        scan_all = not self._options.clean
        loaded.producers = replay_producers(
            self._files,
            loaded.segments,
            loaded.snapshots,
            loaded.log_start_offset,
            end_offset,
            scan_all=scan_all,
        )
        loaded.producers.remove_expired(self._options.now_ms, self._options.producer_id_expiration_ms)

    # after an unclean stop

    def _recover(self, recovery_point: int) -> None:
        """Check everything from `recovery_point` on, and make again what is derived from it."""
        loaded = self._loaded
        loaded.epochs.truncate_from_end(recovery_point)
        loaded.snapshots.remove_above(recovery_point)
        newest = loaded.snapshots.newest(loaded.log_start_offset, recovery_point)
        snapshot = newest[0] if newest is not None else None
        if newest is not None:
            loaded.producers.load(newest[1], newest[0])
        known = loaded.log_start_offset if snapshot is None else max(snapshot, loaded.log_start_offset)
        known = min(known, recovery_point)  # where scanning must begin at the latest
        scanned = segments_from(loaded.segments, known)
        expected = scanned[0].base_offset
        for index, segment in enumerate(scanned):
            if self._gap(segment.base_offset, expected):
                self._cut(scanned[index - 1], scanned[index - 1].size_bytes, expected, scanned[index:])
                break
            position = self._trusted_start(segment, known) if not index else self._reset(segment)
            segment.truncate_aborted(recovery_point)
            end, expected = self._recover_segment(segment, position, expected, snapshot or 0, recovery_point)
            if end < segment.size_bytes:
                self._cut(segment, end, expected, scanned[index + 1 :])
                break
        loaded.unpersisted = loaded.segments[:-1]
        if expected < self._options.recovery_point:
            logger.error(
                "%s: offsets %d to %d are gone", self._name, expected, self._options.recovery_point - 1
            )
        loaded.log_end_offset = expected
        if snapshot is not None and expected < snapshot:
            loaded.producers = replay_producers(
                self._files,
                loaded.segments,
                loaded.snapshots,
                loaded.log_start_offset,
                expected,
                scan_all=True,
            )
        loaded.producers.end_offset = expected
        loaded.producers.remove_expired(self._options.now_ms, self._options.producer_id_expiration_ms)

    def _check_epochs(self, header: BatchHeader, *, first: bool) -> None:
        """Whether the epoch checkpoint reaches to the batch where scanning begins, the log's first or not."""
        known = self._loaded.epochs.epoch_for_offset(header.base_offset)
        self._epochs_known = first or (self._epochs_known and known == header.partition_leader_epoch)

    def _read_all_epochs(self) -> None:
        """The epoch checkpoint is gone or too old: take the epochs from the batches."""
        loaded = self._loaded
        logger.warning("%s: reading the leader epochs from all batches", self._name)
        loaded.epochs = LeaderEpochs()
        for segment in loaded.segments:
            with contextlib.suppress(RecordError):
                for _, header in self._reader.headers(segment, 0, segment.size_bytes, wait=True):
                    if header.partition_leader_epoch > loaded.epochs.latest:
                        loaded.epochs.assign(header.partition_leader_epoch, header.base_offset)

    def _gap(self, offset: int, expected: int) -> bool:
        """Whether something is missing before `offset`: only compaction, of old data, leaves gaps."""
        return offset > expected >= max(self._options.recovery_point, self._options.compacted_offset)

    def _trusted_start(self, segment: FileSegment, offset: int) -> int:
        """A batch boundary at or below `offset` from which to scan; indexes are kept up to it."""
        relative = max(offset - segment.base_offset, 0)
        count = segment.index.count_below(0, relative)
        entry = None
        if count:
            segment.index.use_disk(count)
            entry = segment.index.last(wait=True)
        if entry is not None and entry[1] < segment.size_bytes:
            batches = scan(self._files, segment.handle, entry[1], segment.size_bytes)
            try:
                _, header, _ = next(batches)
            except (RecordError, StopIteration):
                header = None
            if header is not None and header.base_offset <= segment.base_offset + entry[0] < offset:
                segment.index.truncate(count)
                segment.time_index.truncate(segment.time_index.count_below(1, entry[0]))
                segment.load_timestamps()
                return entry[1]
        return self._reset(segment)

    def _reset(self, segment: FileSegment) -> int:
        """Forget the indexes: the segment is scanned from its start."""
        segment.index.truncate(0)
        segment.time_index.truncate(0)
        segment.load_timestamps()
        return 0

    def _recover_segment(
        self, segment: FileSegment, position: int, expected: int, snapshot: int, recovery_point: int
    ) -> tuple[int, int]:
        """Check the batches from `position` on; returns where they end, and the offset that comes next."""
        loaded = self._loaded
        while True:
            try:
                for start, header, batch in scan(self._files, segment.handle, position, segment.size_bytes):
                    if header.base_offset < expected or self._gap(header.base_offset, expected):
                        raise RecordError(f"offset {header.base_offset} where {expected} is due")
                    segment.note_batch(start, header.size_bytes, header.last_offset, header.max_timestamp)
                    if not self._scanned:
                        self._scanned = True
                        self._check_epochs(header, first=segment is loaded.segments[0] and not start)
                    if header.partition_leader_epoch > loaded.epochs.latest:
                        loaded.epochs.assign(header.partition_leader_epoch, header.base_offset)
                    counts = header.base_offset >= snapshot and header.last_offset >= loaded.log_start_offset
                    if header.producer_id >= 0 and counts:
                        aborted = loaded.producers.learn(
                            batch, header, header.base_offset, header.last_offset
                        )
                        if aborted is not None and aborted.last_offset >= recovery_point:
                            segment.add_aborted(aborted)
                    expected = header.next_offset
                    position = start + header.size_bytes
                return position, expected
            except RecordError as error:
                damage = (
                    damage_at(self._files, loaded.segments, segment, position, expected, loaded.epochs)
                    if expected < self._options.recovery_point
                    else None
                )
                if damage is None:
                    logger.warning(
                        "%s: the log ends at offset %d (%s at position %d: %s)",
                        self._name,
                        expected,
                        os.path.basename(segment.file.path),
                        position,
                        error,
                    )
                    return position, expected
                logger.error(
                    "%s: %s is damaged from position %d to %d, offsets %d to %d are lost: %s",
                    self._name,
                    os.path.basename(segment.file.path),
                    damage.start,
                    damage.end,
                    expected,
                    damage.next_offset - 1,
                    error,
                )
                segment.corrupt.append(damage)
                position, expected = damage.end, damage.next_offset

    def _cut(self, segment: FileSegment, position: int, end_offset: int, later: list[FileSegment]) -> None:
        loaded = self._loaded
        loaded.cut_bytes = segment.size_bytes - position + sum(other.size_bytes for other in later)
        logger.warning(
            "%s: cutting %d bytes behind the last whole batch; the log ends at offset %d",
            self._name,
            loaded.cut_bytes,
            end_offset,
        )
        timestamp, offset = segment.max_timestamp, segment.max_timestamp_offset
        segment.truncate_to_position(position, end_offset)
        segment.max_timestamp, segment.max_timestamp_offset = timestamp, offset
        for other in later:
            self._discard(other)

    def _discard(self, segment: FileSegment) -> None:
        self._loaded.segments.remove(segment)
        segment.close()
        for suffix in names.SEGMENT_SUFFIXES:
            self._remove(f"{segment.base_offset:020d}{suffix}")

    # both

    def _settle(self) -> None:
        """Make start, epochs and snapshots agree with the segments that there are."""
        loaded = self._loaded
        if loaded.log_start_offset > loaded.log_end_offset:
            logger.warning(
                "%s: the log starts at %d and ends at %d: nothing of it is left",
                self._name,
                loaded.log_start_offset,
                loaded.log_end_offset,
            )
            for segment in list(loaded.segments):
                self._discard(segment)
            loaded.log_end_offset = loaded.log_start_offset
            loaded.producers.end_offset = loaded.log_end_offset
        if not self._epochs_known and loaded.segments:
            self._read_all_epochs()
        loaded.epochs.truncate_from_end(loaded.log_end_offset)
        loaded.epochs.truncate_from_start(loaded.log_start_offset)
        loaded.snapshots.remove_above(loaded.log_end_offset)
        loaded.snapshots.remove_strays({segment.base_offset for segment in loaded.segments})

    def _remove(self, name: str) -> None:
        self._files.unlink_if_exists(os.path.join(self._directory, name))


def segments_from(segments: list[FileSegment], offset: int) -> list[FileSegment]:
    """The segment in whose range `offset` lies, and those behind it."""
    first = max((i for i, segment in enumerate(segments) if segment.base_offset <= offset), default=0)
    return segments[first:]


def replay_producers(
    files: Files,
    segments: list[FileSegment],
    snapshots: Snapshots,
    log_start_offset: int,
    end_offset: int,
    *,
    scan_all: bool,
) -> ProducerStates:
    """The producers' state at `end_offset`: the newest snapshot, and the batches behind it.

    `scan_all`: without a snapshot, all batches.
    """
    producers = ProducerStates()
    newest = snapshots.newest(log_start_offset, end_offset)
    if newest is not None:
        producers.load(newest[1], newest[0])
    start = max(newest[0] if newest is not None else 0, log_start_offset)
    if start < end_offset and (newest is not None or scan_all):
        reader = LogReader(files, report=False)
        for segment in segments_from(segments, start):
            place = reader.place_of([segment], 0, start, wait=True)
            for _, header, batch in scan(files, segment.handle, place.position, segment.size_bytes):
                if header.producer_id >= 0 and header.base_offset < end_offset:
                    producers.learn(batch, header, header.base_offset, header.last_offset)
    producers.end_offset = end_offset
    return producers


def _drop_zeros(index: Index, column: int) -> None:
    """Entries of zeros at the end of an index file are none."""
    last = index.last(wait=True)
    if last is None or last[column]:
        return
    low, high = 0, len(index)
    while low < high:
        middle = (low + high) // 2
        entry = index.entry(middle)
        if entry is not None and entry[column]:
            low = middle + 1
        else:
            high = middle
    index.use_disk(low)
