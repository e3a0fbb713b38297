"""What every log does, whatever holds its bytes: offsets, producers, epochs, rolling, retention, watchers.

An append goes: validate, look at the producer, give offsets, roll if due, store, and only then change state;
if storing fails, nothing has changed. Subclasses store: they make segments, read them, and say when what was
appended counts as committed (the high watermark).
"""

from __future__ import annotations

import random
from abc import ABC, abstractmethod
from bisect import bisect_right
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

from kbroker.pending import Pending
from kbroker.protocol.records import (
    NO_LEADER_EPOCH,
    BatchHeader,
    ControlType,
    assign_offsets,
    build_control_batch,
    read_header,
)
from kbroker.protocol.records.batch_run import BatchRun, assign_run, read_run
from kbroker.storage.compaction.jobs import CompactionStats
from kbroker.storage.config import LogConfig
from kbroker.storage.counts import LogCounts
from kbroker.storage.errors import (
    DiskFull,
    OffsetOutOfRange,
    RecordListTooLarge,
    StorageError,
    UnexpectedOffset,
)
from kbroker.storage.interface import (
    AbortedTransaction,
    Appended,
    Assigned,
    EpochEndOffset,
    LogTrace,
    LongAppend,
    ProducerState,
)
from kbroker.storage.partition.append_rules import accept, accept_in_steps
from kbroker.storage.partition.leader_epochs import LeaderEpochs
from kbroker.storage.partition.producer_state import BatchMetadata, ProducerStates
from kbroker.storage.partition.transaction_index import AbortedEntry
from kbroker.storage.partition.validation import BatchRules
from kbroker.storage.segments.segment import Segment

S = TypeVar("S", bound=Segment)


class AbstractLog(ABC, Generic[S]):
    def __init__(
        self, topic: str, partition: int, topic_id: bytes, config: LogConfig, leader_epoch: int
    ) -> None:
        self.topic = topic
        self.partition = partition
        self.topic_id = topic_id
        self.leader_epoch = leader_epoch
        self.log_start_offset = 0
        self.log_end_offset = 0
        self.high_watermark = 0
        self.last_stable_offset = 0
        self.first_dirty_offset: int | None = None  # where the last compaction ended
        self.compacted_offset = 0  # where compaction ever went: below it offsets may be missing
        self.last_compaction: CompactionStats | None = None  # since the log was opened
        self.counts = LogCounts()
        self._segments: list[S] = []
        self._producers = ProducerStates()
        self._epochs = LeaderEpochs()
        self._watchers: dict[object, Callable[[], None]] = {}
        self._commits_at_once = True  # whatever is appended
        self._refusal: StorageError | None = None  # why the log takes no more appends, if it does not
        self._held: StorageError | None = None  # the same, where it is only held
        self.trace: LogTrace | None = None
        self.config = config

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.topic}-{self.partition}>"

    @property
    def config(self) -> LogConfig:
        return self._config

    @config.setter
    def config(self, config: LogConfig) -> None:
        self._config = config
        self._rules = BatchRules(config)
        self._segment_bytes = config.segment_bytes
        self._config_changed()

    def _config_changed(self) -> None:
        """For what a subclass derives from the config."""

    @property
    def latest_epoch(self) -> int:
        return self._epochs.latest

    @property
    def size_bytes(self) -> int:
        return sum(segment.size_bytes for segment in self._segments)

    @property
    def segment_count(self) -> int:
        return len(self._segments)

    @property
    def shows_at_once(self) -> bool:
        return True

    def refresh(self) -> None:
        return None

    def set_leader_epoch(self, leader_epoch: int) -> None:
        self.leader_epoch = max(leader_epoch, self.leader_epoch)

    # appending

    def append_as_leader(
        self, records: memoryview, now_ms: int, expected_offset: int | None = None
    ) -> Appended:
        if self._refusal is not None:
            raise self._refusal
        records, header = accept(self._rules, records, now_ms)
        return self._append_checked(records, header, now_ms, expected_offset)

    def append_in_steps(
        self, records: memoryview, now_ms: int, expected_offset: int | None = None
    ) -> LongAppend:
        if self._refusal is not None:
            raise self._refusal
        records, header = yield from accept_in_steps(self._rules, records, now_ms)
        if self._refusal is not None:
            raise self._refusal
        return self._append_checked(records, header, now_ms, expected_offset)

    def _append_checked(
        self, records: memoryview, header: BatchHeader, now_ms: int, expected_offset: int | None = None
    ) -> Appended:
        producer_id = header.producer_id
        if producer_id >= 0:
            duplicate = self._producers.check_data(header)
            if duplicate is not None:
                return self._repeated(duplicate)
        base_offset = self.log_end_offset
        if expected_offset is not None and expected_offset != base_offset:
            raise UnexpectedOffset(expected_offset, base_offset)
        trace = self.trace
        begin_ns = 0 if trace is None else trace.begin_ns()
        last_offset = base_offset + header.last_offset_delta
        self._store(records, header, base_offset, last_offset, now_ms)
        if producer_id >= 0:
            self._producers.update_data(header, base_offset, last_offset)
        durable = self._appended(now_ms)
        if trace is not None:
            trace.appended(records, header, base_offset, (now_ms, begin_ns), durable)
        return Appended(
            base_offset,
            last_offset,
            now_ms if self._rules.append_time else -1,
            self.log_start_offset,
            False,
            durable,
        )

    def append_run(self, batches: Sequence[memoryview], now_ms: int) -> list[int] | None:
        run = self._usual_run(batches, now_ms) if self._takes_runs and self._segments else None
        if run is None:
            return None
        offset = self.log_end_offset
        offsets: list[int] = []
        last_offsets: list[int] = []
        for count in run.counts:
            offsets.append(offset)
            offset += count
            last_offsets.append(offset - 1)
        segment = self._active_segment(now_ms)
        size = sum(map(len, batches))
        newest = max(run.timestamps)
        # The first batch of a segment, and one for which it ends, come alone.
        if not 0 < segment.size_bytes <= self._segment_bytes - size or segment.must_roll(
            offset - 1, newest, now_ms, self._config, len(batches)
        ):
            return None
        epoch = self.leader_epoch
        assign_run(batches, offsets, epoch)
        try:
            segment.append_run(batches, last_offsets, run.timestamps)
        except StorageError:
            assign_run(batches, [0] * len(batches), NO_LEADER_EPOCH)  # as the producer sent them
            return None
        self.counts.appends += len(batches)
        self.log_end_offset = offset
        if epoch != self._epochs.latest:
            self._epochs.assign(epoch, offsets[0])
        if run.first.producer_id >= 0:
            self._producers.update_run(run, offsets[0])
        self._appended(now_ms)
        return offsets

    @property
    def _takes_runs(self) -> bool:
        return self._commits_at_once and self._rules.plain and self._refusal is None and self.trace is None

    def _usual_run(self, batches: Sequence[memoryview], now_ms: int) -> BatchRun | None:
        """The run, if all of it is of one producer, in its order, and nothing is to be said of any batch."""
        rules = self._rules
        run = read_run(batches) if max(map(len, batches)) <= rules.max_bytes else None
        if run is None or rules.concern_time(max(run.timestamps), now_ms):
            return None
        if run.first.producer_id >= 0:
            try:
                if self._producers.check_data(run.first) is not None:
                    return None
            except StorageError:
                return None
        return run

    def append_control(
        self,
        producer_id: int,
        producer_epoch: int,
        *,
        commit: bool,
        coordinator_epoch: int,
        now_ms: int,
        transaction_version: int = 0,
    ) -> Appended:
        if self._refusal is not None:
            raise self._refusal
        self._producers.check_marker(producer_id, producer_epoch, coordinator_epoch, transaction_version)
        for segment in self._segments[-1:]:
            segment.aborted()  # the marker may add to them, and must not fail once it is written
        marker = build_control_batch(
            ControlType.COMMIT if commit else ControlType.ABORT,
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            coordinator_epoch=coordinator_epoch,
            timestamp=now_ms,
        )
        batch = memoryview(bytearray(marker))
        header = read_header(batch)
        offset = self.log_end_offset
        self._store(batch, header, offset, offset, now_ms)
        aborted = self._producers.learn(batch, header, offset, offset)
        if aborted is not None:
            self._segments[-1].add_aborted(aborted)
        return Appended(offset, offset, -1, self.log_start_offset, False, self._appended(now_ms))

    def _store(
        self, batch: memoryview, header: BatchHeader, base_offset: int, last_offset: int, now_ms: int
    ) -> None:
        size = len(batch)
        epoch = self.leader_epoch
        assign_offsets(batch, base_offset, epoch)
        segment = self._active_segment(now_ms)
        timestamp = header.max_timestamp
        if segment.size_bytes + size > self._segment_bytes or segment.must_roll(
            last_offset, timestamp, now_ms, self._config
        ):
            if size > self._segment_bytes:
                raise RecordListTooLarge(
                    f"{size} bytes do not fit into a segment of {self._segment_bytes} bytes"
                )
            if segment.size_bytes:
                segment = self._roll(now_ms)
        segment.append(batch, size, last_offset, timestamp)
        self.counts.appends += 1
        self.log_end_offset = last_offset + 1
        if epoch != self._epochs.latest:
            self._epochs.assign(epoch, base_offset)

    def _repeated(self, batch: BatchMetadata) -> Appended:
        # Kafka gives the batch's timestamp as append time of a duplicate, whatever the topic's type.
        return Appended(
            batch.base_offset,
            batch.last_offset,
            batch.timestamp,
            self.log_start_offset,
            True,
            self._durable_up_to(batch.last_offset),
        )

    @abstractmethod
    def _active_segment(self, now_ms: int) -> S: ...

    @abstractmethod
    def _roll(self, now_ms: int) -> S:
        """End the active segment and begin one at the log end offset."""

    @abstractmethod
    def _appended(self, now_ms: int) -> Pending[Assigned | None] | None:
        """Something was appended: commit it, or say when it will be."""

    @abstractmethod
    def _durable_up_to(self, last_offset: int) -> Pending[Assigned | None] | None:
        """None if `last_offset` may be acknowledged now, else when it may."""

    def _roll_jitter_ms(self) -> int:
        jitter = min(self._config.segment_jitter_ms, self._config.segment_ms)
        return random.randrange(jitter) if jitter > 0 else 0

    # offsets

    def _commit_up_to(self, offset: int) -> None:
        """Everything below `offset` is committed: move the high watermark and what depends on it."""
        self.high_watermark = offset
        self.last_stable_offset = self._stable_offset() if self._producers.has_unstable else offset
        if self._watchers:
            self._notify()

    def _stable_offset(self) -> int:
        unstable = self._producers.first_unstable_offset(self.high_watermark)
        if unstable is None:
            return self.high_watermark
        return min(max(unstable, self.log_start_offset), self.high_watermark)

    def _raise_log_start(self, offset: int) -> None:
        self.log_start_offset = offset
        self._epochs.truncate_from_start(offset)
        self._producers.end_offset = max(self._producers.end_offset, offset)
        self.high_watermark = max(self.high_watermark, offset)
        self.last_stable_offset = self._stable_offset()
        self._notify()

    def delete_records_before(self, offset: int) -> int:
        self._check_readable()
        if not 0 <= offset <= self.high_watermark:
            raise OffsetOutOfRange(f"offset {offset} is not between 0 and {self.high_watermark}")
        if offset > self.log_start_offset:
            self._raise_log_start(offset)
        return self.log_start_offset

    def end_offset_for_epoch(self, leader_epoch: int) -> EpochEndOffset:
        return self._epochs.end_offset_for(leader_epoch, self.log_end_offset)

    # reading

    def _check_range(self, offset: int) -> None:
        if not self.log_start_offset <= offset <= self.log_end_offset:
            raise OffsetOutOfRange(
                f"offset {offset} is not between {self.log_start_offset} and {self.log_end_offset}"
            )

    def _segment_index(self, offset: int) -> int:
        """Of the segment in whose range the offset lies."""
        return max(bisect_right(self._segments, offset, key=_base_offset) - 1, 0)

    def _aborted_between(self, offset: int, upper_bound: int) -> list[AbortedTransaction]:
        """The aborted transactions with data in [offset, upper_bound)."""
        found = []
        for segment in self._segments[self._segment_index(offset) :]:
            for entry in segment.aborted():
                if entry.last_offset >= offset and entry.first_offset < upper_bound:
                    found.append(AbortedTransaction(entry.producer_id, entry.first_offset))
                if entry.last_stable_offset >= upper_bound:
                    return found
        return found

    # retention

    def apply_retention(self, now_ms: int) -> int:
        """Delete what retention.ms, retention.bytes and the log start gave up; returns how many segments."""
        deleted = self._delete_oldest(lambda segment, end: end is not None and end <= self.log_start_offset)
        config = self._config
        if not config.delete:
            return deleted
        if config.retention_bytes >= 0:
            excess = self.size_bytes - config.retention_bytes

            def too_much(segment: S, _end: int | None) -> bool:
                nonlocal excess
                excess -= segment.size_bytes
                return excess >= 0

            deleted += self._delete_oldest(too_much)
        if config.retention_ms >= 0:
            oldest = now_ms - config.retention_ms
            deleted += self._delete_oldest(lambda segment, _end: segment.largest_timestamp() < oldest, now_ms)
        return deleted

    def _delete_oldest(self, condemned: Callable[[S, int | None], bool], now_ms: int = 0) -> int:
        """Delete from the oldest segment on while the condition holds, never beyond the high watermark."""
        segments = self._segments
        count = 0
        for index, segment in enumerate(segments):
            end = segments[index + 1].base_offset if index + 1 < len(segments) else None
            if end is None and not segment.size_bytes:
                break
            upper_bound = self.log_end_offset if end is None else end
            if self.high_watermark < upper_bound or not condemned(segment, end):
                break
            count += 1
        if not count:
            return 0
        if count == len(segments):
            try:
                self._roll(now_ms)
            except DiskFull:  # the last one stays until the others have made room
                count -= 1
                if not count:
                    raise
        doomed = segments[:count]
        start = segments[count].base_offset
        if start > self.log_start_offset:
            self._raise_log_start(start)
        del segments[:count]
        size = sum(segment.size_bytes for segment in doomed)
        self.counts.gone_bytes += size
        self.counts.deleted_bytes += size
        self.counts.deleted_segments += count
        self._discard(doomed)
        return count

    @abstractmethod
    def _discard(self, segments: list[S]) -> None:
        """These segments are no longer part of the log."""

    # compaction

    @property
    def segments(self) -> Sequence[S]:
        """All of them, the active one last."""
        return self._segments

    @property
    def usable(self) -> bool:
        return self._refusal is None

    def aborted_before(self, offset: int) -> list[AbortedEntry]:
        """The aborted transactions with data below `offset`."""
        return [
            entry for segment in self._segments for entry in segment.aborted() if entry.first_offset < offset
        ]

    def last_of_producers(self) -> dict[int, tuple[int, int]]:
        """By producer id: the offset of its last data (-1: none of its epoch), and its epoch."""
        return {
            entry.producer_id: (entry.batches[-1].last_offset if entry.batches else -1, entry.producer_epoch)
            for entry in self._producers
        }

    # producers

    def producers(self) -> list[ProducerState]:
        return [
            ProducerState(
                entry.producer_id,
                entry.producer_epoch,
                entry.last_sequence,
                entry.last_timestamp,
                entry.coordinator_epoch,
                entry.current_txn_first_offset,
            )
            for entry in self._producers
        ]

    def has_ongoing_transaction(self, producer_id: int, producer_epoch: int) -> bool:
        entry = self._producers.get(producer_id)
        return (
            entry is not None
            and entry.producer_epoch == producer_epoch
            and entry.current_txn_first_offset >= 0
        )

    def has_batches_of(self, producer_id: int) -> bool:
        entry = self._producers.get(producer_id)
        return entry is not None and bool(entry.batches)

    @property
    def producer_count(self) -> int:
        return len(self._producers)

    def forget_oldest_producers(self, count: int) -> None:
        self._producers.remove_oldest(count)

    def expire_producers(self, now_ms: int, expiration_ms: int) -> None:
        self._producers.remove_expired(now_ms, expiration_ms)

    # watchers

    def watch(self, callback: Callable[[], None]) -> Callable[[], None]:
        token = object()
        self._watchers[token] = callback

        def unwatch() -> None:
            self._watchers.pop(token, None)

        return unwatch

    def _notify(self) -> None:
        for callback in list(self._watchers.values()):
            callback()

    def hold_appends(self, reason: StorageError | None) -> None:
        """Append nothing for this reason, or append again; all else goes on."""
        if not self._ended:
            self._refusal = self._held = reason

    @property
    def _ended(self) -> bool:
        """Whether it takes no more appends, and nothing else either."""
        return self._refusal is not self._held

    def _check_readable(self) -> None:
        if self._refusal is not None and self._ended:
            raise self._refusal

    def _refuse(self, reason: StorageError) -> None:
        """No more appends; whoever waits is told."""
        if not self._ended:
            self._refusal, self._held = reason, None
        self._notify()


def _base_offset(segment: Segment) -> int:
    return segment.base_offset
