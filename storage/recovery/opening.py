"""Opening the directory of a partition: finding its segments, its end, its producers and its epochs.

After a clean stop nothing is scanned: the end is walked to from the last index entry and held against the
checkpoints, the producers come from their snapshot. After an unclean one every batch from the recovery point
on is checked, and what follows from it (indexes, producers, epochs) is made again. Whichever it was, each
older segment must end where the next one begins (chain.py).

What was there once is lost, not cut: it is reported, readers of it get an error, and its offsets are not
given again. That is all below the recovery point, which is only published once the `.log` and everything
derived from it are on disk up to there (log.py, `checkpoint`); and, unless the machine went down, all that
was ever written: then the only thing that may be missing is the end of the last write. Else the log is cut
at the first batch that is not whole and valid. What is cut beyond a torn last batch is kept (set_aside.py).
"""

from __future__ import annotations

import contextlib
import logging
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise

from kbroker.protocol.records import BatchHeader, RecordError
from kbroker.storage import names
from kbroker.storage.errors import StorageError
from kbroker.storage.files import Files
from kbroker.storage.partition.leader_epochs import LeaderEpochs
from kbroker.storage.partition.log_reader import LogReader
from kbroker.storage.partition.producer_state import ProducerStates
from kbroker.storage.partition.snapshots import Snapshots
from kbroker.storage.recovery import chain
from kbroker.storage.recovery.batch_scan import CHUNK_BYTES, scan
from kbroker.storage.recovery.damage import Loss, has_batch_behind, offsets_at
from kbroker.storage.recovery.partition_files import LoadOptions, PartitionFiles
from kbroker.storage.recovery.set_aside import set_aside
from kbroker.storage.recovery.walk import Batch, Lost, Tail, gap, walk
from kbroker.storage.segments.descriptors import Descriptors
from kbroker.storage.segments.file_segment import Damage, FileSegment

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
    losses: list[Loss] = field(default_factory=list)


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
        self._directory = directory
        self._options = options
        self._found = PartitionFiles(files, descriptors, directory, options, failed)
        self._name = os.path.basename(directory)
        self._epochs_known = False  # up to where scanning began
        self._scanned = False
        # Everything below was there. Of two witnesses who disagree the lower one claims less.
        self._recovery_point = min(options.ends, default=0)
        # And below here what is derived from it was on disk, too.
        self._derived_point = (
            self._recovery_point if options.clean else min(self._recovery_point, options.recovery_point or 0)
        )
        self._loaded = Loaded(Snapshots(files, directory))
        self._reader = LogReader(files, report=False)

    def load(self) -> Loaded:
        loaded = self._loaded
        found = self._found
        found.look()
        loaded.segments, loaded.epochs, loaded.snapshots = found.segments, found.epochs, found.snapshots
        loaded.log_start_offset = found.find_start()
        self._epochs_known = found.epochs_known
        if not loaded.segments:
            loaded.log_end_offset = loaded.log_start_offset
            if loaded.log_start_offset < self._recovery_point:
                self._lose_end(loaded.log_start_offset)
            loaded.producers.end_offset = loaded.log_end_offset
            return loaded
        try:
            self._open()
        except (RecordError, EOFError, ValueError) as error:
            last = loaded.segments[-1].base_offset
            last = last if self._options.clean else min(last, self._derived_point)
            logger.warning("%s: its files do not agree (%s): checking from %d on", self._name, error, last)
            try:
                self._start_over(last)
            except (RecordError, EOFError, ValueError) as again:
                logger.warning("%s: its files do not agree (%s): checking all of it", self._name, again)
                self._start_over(0)
        self._settle()
        return loaded

    def _open(self) -> None:
        if self._options.clean:
            self._check_chain(self._loaded.segments)
            self._replay(self._find_end())
        elif self._untouched_since(self._derived_point):
            self._check_chain(self._loaded.segments)
            self._replay(self._derived_point)
        else:
            self._recover(self._derived_point)

    def _start_over(self, offset: int) -> None:
        """Trust nothing that is derived from the log behind `offset`, where a segment begins."""
        loaded = self._loaded
        loaded.producers = ProducerStates()
        self._scanned = False
        for segment in loaded.segments:
            if segment.base_offset >= offset:
                segment.reset_aborted()
        self._recover(offset)

    # the end, and the chain of segments that leads to it

    def _find_end(self) -> int:
        """Walk to the end of the last segment; ValueError if it is not the one that was checkpointed."""
        segment = self._loaded.segments[-1]
        segment.load_timestamps()
        end_offset, last = chain.end_of(self._reader, segment)
        if self._options.clean and self._options.ends and end_offset not in self._options.ends:
            raise ValueError(f"the log ends at offset {end_offset}, not at {self._recovery_point}")
        if last is not None:
            self._check_epochs(last, first=False)
        self._loaded.log_end_offset = end_offset
        return end_offset

    def _check_chain(self, segments: list[FileSegment]) -> None:
        """Whether each segment but the last ends where the next begins, as far as that is cheap to tell."""
        for segment, following in pairwise(segments):
            try:
                end_offset, _ = chain.end_of(self._reader, segment)
            except (RecordError, EOFError, ValueError) as error:
                logger.warning("%s: checking all of segment %d: %s", self._name, segment.base_offset, error)
                self._examine(segment)
            else:
                self._check_gap(segment, end_offset, following.base_offset)

    def _examine(self, segment: FileSegment) -> None:
        """Check every batch of an older segment, and make its indexes again."""

        def note(start: int, header: BatchHeader, _: memoryview) -> None:
            segment.note_batch(start, header.size_bytes, header.last_offset, header.max_timestamp)

        self._walk(segment, self._reset(segment), segment.base_offset, note)
        segment.complete()

    def _check_gap(self, segment: FileSegment, expected: int, offset: int) -> None:
        """At the end of `segment`, with `expected` due and the next one beginning at `offset`."""
        if self._gap(expected, offset):
            damage = Damage(segment.size_bytes, segment.size_bytes, offset)
            self._keep_apart(segment, damage, expected, "they are missing")

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
        replay = producers_of_clean_stop if self._options.clean else replay_producers
        loaded.producers = replay(
            self._files, loaded.segments, loaded.snapshots, loaded.log_start_offset, end_offset
        )
        loaded.producers.remove_expired(self._options.now_ms, self._options.producer_id_expiration_ms)

    # after an unclean stop

    def _recover(self, recovery_point: int) -> None:
        """Check everything from `recovery_point` on, and make again what is derived from it."""
        loaded = self._loaded
        newest = loaded.snapshots.newest(loaded.log_start_offset, recovery_point)
        snapshot = newest[0] if newest is not None else None
        if newest is None:
            recovery_point = 0  # all of it is scanned, so that nothing else need be trusted either
        loaded.epochs.truncate_from_end(recovery_point)
        loaded.snapshots.remove_above(recovery_point, keep=self._recovery_point)
        if newest is not None:
            loaded.producers.load(newest[1], newest[0])
        known = loaded.log_start_offset if snapshot is None else max(snapshot, loaded.log_start_offset)
        known = min(known, recovery_point)  # where scanning must begin at the latest
        scanned = segments_from(loaded.segments, known)
        older = len(loaded.segments) - len(scanned)
        self._check_chain(loaded.segments[: older + 1])
        position, expected = self._trusted_start(scanned[0], known)
        for index, segment in enumerate(scanned):
            if self._gap(expected, segment.base_offset):
                before = scanned[index - 1]
                if not self._was_there(expected):
                    self._cut(before, before.size_bytes, expected, scanned[index:])
                    break
                self._check_gap(before, expected, segment.base_offset)
            if index:
                position, expected = self._reset(segment), max(expected, segment.base_offset)
            segment.truncate_aborted(recovery_point)
            end, expected = self._recover_segment(segment, position, expected, snapshot or 0, recovery_point)
            if end < segment.size_bytes:
                self._cut(segment, end, expected, scanned[index + 1 :])
                break
        loaded.unpersisted = loaded.segments[:-1]
        loaded.log_end_offset = expected
        if snapshot is not None and expected < snapshot:
            loaded.producers = replay_producers(
                self._files, loaded.segments, loaded.snapshots, loaded.log_start_offset, expected
            )
        if expected < self._recovery_point:
            self._lose_end(expected)
        else:
            loaded.snapshots.remove_above(max(expected - 1, recovery_point))
        loaded.producers.end_offset = loaded.log_end_offset
        loaded.producers.remove_expired(self._options.now_ms, self._options.producer_id_expiration_ms)

    def _lose_end(self, expected: int) -> None:
        """Everything from `expected` to the recovery point is gone: the log goes on behind it."""
        loaded, end_offset = self._loaded, self._recovery_point
        if not loaded.segments:
            loaded.segments.append(self._found.empty_segment(expected))
        before = loaded.segments[-1]
        damage = Damage(before.size_bytes, before.size_bytes, end_offset)
        self._keep_apart(before, damage, expected, "the log ends before them")
        loaded.segments.append(self._found.empty_segment(end_offset))
        newest = loaded.snapshots.newest(end_offset, end_offset)
        if newest is not None:  # nobody who produced them need to be surprised
            loaded.producers = ProducerStates()
            loaded.producers.load(newest[1], newest[0])
        loaded.log_end_offset = end_offset

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

    def _gap(self, expected: int, offset: int) -> bool:
        return gap(expected, offset, self._options.compacted_offset)

    def _was_there(self, offset: int) -> bool:
        """Whether what began at `offset` was in the file once, so that it cannot be a write that failed."""
        return self._options.all_written or offset < self._recovery_point

    def _trusted_start(self, segment: FileSegment, offset: int) -> tuple[int, int]:
        """A batch boundary at or below `offset` from which to scan, and the offset that is due there.

        Indexes are kept up to it.
        """
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
                return entry[1], header.base_offset
        return self._reset(segment), segment.base_offset

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

        def learn(start: int, header: BatchHeader, batch: memoryview) -> None:
            segment.note_batch(start, header.size_bytes, header.last_offset, header.max_timestamp)
            if not self._scanned:
                self._scanned = True
                self._check_epochs(header, first=segment is loaded.segments[0] and not start)
            if header.partition_leader_epoch > loaded.epochs.latest:
                loaded.epochs.assign(header.partition_leader_epoch, header.base_offset)
            counts = header.base_offset >= snapshot and header.last_offset >= loaded.log_start_offset
            if header.producer_id >= 0 and counts:
                aborted = loaded.producers.learn(batch, header, header.base_offset, header.last_offset)
                if aborted is not None and aborted.last_offset >= recovery_point:
                    segment.add_aborted(aborted)

        return self._walk(segment, position, expected, learn)

    def _walk(
        self,
        segment: FileSegment,
        position: int,
        expected: int,
        visit: Callable[[int, BatchHeader, memoryview], None],
    ) -> tuple[int, int]:
        """Visit the valid batches from `position` on, where `expected` is due; damage is kept apart.

        Returns where they end, and the offset that comes next.
        """
        segments = self._loaded.segments
        following = segments.index(segment) + 1
        for event in walk(
            self._files,
            segment.handle,
            segment.size_bytes,
            position,
            expected,
            limit=segments[following].base_offset if following < len(segments) else None,
            compacted_offset=self._options.compacted_offset,
        ):
            if isinstance(event, Batch):
                visit(*event)
                position, expected = event.position + event.header.size_bytes, event.header.next_offset
            elif isinstance(event, Lost) and self._was_there(event.expected):
                damage = event.damage
                if damage.start < damage.end == segment.size_bytes:
                    self._set_aside(segment, damage.start)
                    damage = Damage(damage.start, damage.start, damage.next_offset)
                self._keep_apart(segment, damage, event.expected, event.reason)
                position, expected = damage.end, damage.next_offset
            else:
                if isinstance(event, Tail):
                    self._lose_last(segment, position, expected)
                self._report_end(segment, position, expected, event.reason)
                break
        return position, expected

    def _report_end(self, segment: FileSegment, position: int, expected: int, reason: str) -> None:
        name = os.path.basename(segment.file.path)
        logger.warning(
            "%s: the log ends at offset %d (%s at position %d: %s)",
            self._name,
            expected,
            name,
            position,
            reason,
        )

    # what is lost

    def _lose_last(self, segment: FileSegment, position: int, expected: int) -> None:
        """No batch follows. Where every write is there, one that is not torn was acknowledged."""
        if self._options.all_written:
            count = offsets_at(self._files, segment.handle, segment.size_bytes, position, expected)
            self._recovery_point = max(self._recovery_point, expected + count if count else 0)

    def _keep_apart(self, segment: FileSegment, damage: Damage, expected: int, reason: str) -> None:
        """Offsets from `expected` on are lost: whoever reads them is told."""
        segment.note_damage(damage)
        first_offset = max(expected, self._loaded.log_start_offset)
        known = any(loss.first_offset == first_offset for loss in self._loaded.losses)
        if first_offset < damage.next_offset and not known:
            place = f"{os.path.basename(segment.file.path)} at position {damage.start}"
            self._loaded.losses.append(Loss(first_offset, damage.next_offset, f"{place}: {reason}"))

    def _set_aside(self, segment: FileSegment, position: int) -> None:
        """Cut a segment, and keep what is cut."""
        size_bytes = segment.size_bytes - position
        path = set_aside(self._files, segment, position)
        logger.warning("%s: %d bytes are kept in %s", self._name, size_bytes, os.path.basename(path))

    def _cut(self, segment: FileSegment, position: int, end_offset: int, later: list[FileSegment]) -> None:
        """Only what is no more than a torn last batch is not kept."""
        loaded = self._loaded
        loaded.cut_bytes = segment.size_bytes - position + sum(other.size_bytes for other in later)
        logger.warning(
            "%s: cutting %d bytes behind the last whole batch; the log ends at offset %d",
            self._name,
            loaded.cut_bytes,
            end_offset,
        )
        torn = not later and not self._options.clean and end_offset >= self._recovery_point
        size_bytes = segment.size_bytes
        if position < size_bytes and not (
            torn and not has_batch_behind(self._files, segment.handle, size_bytes, position, end_offset)
        ):
            self._set_aside(segment, position)
        timestamp, offset = segment.max_timestamp, segment.max_timestamp_offset
        segment.truncate_to_position(position, end_offset)
        segment.max_timestamp, segment.max_timestamp_offset = timestamp, offset
        for other in later:
            if other.size_bytes:
                self._set_aside(other, 0)
            self._discard(other)

    def _discard(self, segment: FileSegment) -> None:
        self._loaded.segments.remove(segment)
        segment.close()
        for suffix in reversed(names.SEGMENT_SUFFIXES):
            self._found.remove(f"{segment.base_offset:020d}{suffix}")

    # both

    def _settle(self) -> None:
        """Make start, epochs and snapshots agree with the segments that there are."""
        loaded = self._loaded
        if loaded.log_start_offset > loaded.log_end_offset:
            # Records were deleted up to a start that was acknowledged; then the machine lost some before it.
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


def segments_from(segments: list[FileSegment], offset: int) -> list[FileSegment]:
    """The segment in whose range `offset` lies, and those behind it."""
    first = max((i for i, segment in enumerate(segments) if segment.base_offset <= offset), default=0)
    return segments[first:]


def replay_producers(
    files: Files, segments: list[FileSegment], snapshots: Snapshots, log_start_offset: int, end_offset: int
) -> ProducerStates:
    """The producers' state at `end_offset`: the newest snapshot and the batches behind it; or all batches."""
    producers = ProducerStates()
    newest = snapshots.newest(log_start_offset, end_offset)
    if newest is not None:
        producers.load(newest[1], newest[0])
    _replay_batches(producers, files, segments, log_start_offset, end_offset)
    return producers


def producers_of_clean_stop(
    files: Files, segments: list[FileSegment], snapshots: Snapshots, log_start_offset: int, end_offset: int
) -> ProducerStates:
    """The same; but who stopped cleanly without leaving a snapshot had no producer state to keep."""
    producers = ProducerStates()
    newest = snapshots.newest(log_start_offset, end_offset)
    if newest is not None:
        producers.load(newest[1], newest[0])
        _replay_batches(producers, files, segments, log_start_offset, end_offset)
    producers.end_offset = end_offset
    return producers


def _replay_batches(
    producers: ProducerStates,
    files: Files,
    segments: list[FileSegment],
    log_start_offset: int,
    end_offset: int,
) -> None:
    """Bring the state from where it ends to `end_offset`."""
    start = max(producers.end_offset, log_start_offset)
    if start < end_offset:
        reader = LogReader(files, report=False)
        for segment in segments_from(segments, start):
            place = reader.place_of([segment], 0, start, wait=True)
            for _, header, batch in scan(files, segment.handle, place.position, segment.size_bytes):
                if header.producer_id >= 0 and header.base_offset < end_offset:
                    producers.learn(batch, header, header.base_offset, header.last_offset)
    producers.end_offset = end_offset
