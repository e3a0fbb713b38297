"""Logs that live in memory and die with the process: for tests and for `kbroker serve --in-memory`.

The behaviour is the file-backed log's, segments and retention included; appended is committed at once.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence

from kbroker.pending import Pending
from kbroker.protocol.records import iter_records, read_header
from kbroker.storage.compaction.in_memory import compact
from kbroker.storage.compaction.jobs import CompactionStats
from kbroker.storage.config import DirectoryConfig, LogConfig
from kbroker.storage.counts import DirectoryCounts
from kbroker.storage.errors import ImageFailed, InconsistentTopicId, LogDeleted, StorageError
from kbroker.storage.interface import Image, PartitionSize, Slice, TimestampOffset, WantedRead
from kbroker.storage.partition.abstract_log import AbstractLog
from kbroker.storage.partition.producer_limit import CHECK_INTERVAL_MS, limit_producers
from kbroker.storage.partition.transaction_index import AbortedEntry
from kbroker.storage.segments.segment import Segment

_DONE: Pending[None] = Pending.resolved(None)


class MemorySegment(Segment):
    __slots__ = ("_aborted", "batches", "last_offsets", "modified_ms")

    def __init__(self, base_offset: int, created_ms: int, roll_jitter_ms: int = 0) -> None:
        super().__init__(base_offset, created_ms, roll_jitter_ms)
        self.batches: list[bytes] = []
        self.last_offsets: list[int] = []
        self.modified_ms = created_ms
        self._aborted: list[AbortedEntry] = []

    def append(self, batch: memoryview, size: int, last_offset: int, timestamp: int) -> None:
        if not self.size_bytes:
            self.first_timestamp = timestamp
        self.batches.append(bytes(batch))
        self.last_offsets.append(last_offset)
        self.size_bytes += size
        if timestamp > self.max_timestamp:
            self.max_timestamp = timestamp
            self.max_timestamp_offset = last_offset

    def append_run(
        self, batches: Sequence[memoryview], last_offsets: Sequence[int], timestamps: Sequence[int]
    ) -> None:
        for batch, last_offset, timestamp in zip(batches, last_offsets, timestamps, strict=True):
            self.append(batch, len(batch), last_offset, timestamp)

    def empty_copy(self) -> MemorySegment:
        copy = MemorySegment(self.base_offset, self.created_ms, self.roll_jitter_ms)
        copy.modified_ms = self.modified_ms
        return copy

    def indexes_full(self, config: LogConfig, batches: int) -> bool:
        return False

    def last_modified_ms(self) -> int:
        return self.modified_ms

    def aborted(self) -> list[AbortedEntry]:
        return self._aborted

    def add_aborted(self, entry: AbortedEntry) -> None:
        self._aborted.append(entry)


class MemoryLog(AbstractLog[MemorySegment]):
    def __init__(
        self, topic: str, partition: int, topic_id: bytes, config: LogConfig, leader_epoch: int
    ) -> None:
        super().__init__(topic, partition, topic_id, config, leader_epoch)
        self._segments.append(MemorySegment(0, 0))

    def _active_segment(self, now_ms: int) -> MemorySegment:
        segment = self._segments[-1]
        if not segment.size_bytes:
            segment.created_ms = now_ms
        segment.modified_ms = now_ms
        return segment

    def _roll(self, now_ms: int) -> MemorySegment:
        segment = MemorySegment(self.log_end_offset, now_ms, self._roll_jitter_ms())
        self._segments.append(segment)
        return segment

    def _appended(self, now_ms: int) -> None:
        self._commit_up_to(self.log_end_offset)

    def _durable_up_to(self, last_offset: int) -> None:
        return None

    def _discard(self, segments: list[MemorySegment]) -> None:
        pass

    def replace_segments(self, old: list[MemorySegment], new: list[MemorySegment]) -> None:
        """Put compacted segments in the place of the first ones of the log."""
        self._segments[: len(old)] = new
        self.counts.gone_bytes += sum(each.size_bytes for each in old) - sum(each.size_bytes for each in new)

    def read(
        self,
        offset: int,
        max_bytes: int,
        *,
        committed: bool = False,
        min_one: bool = True,
        sendable: bool = False,
        unread: bool = False,
    ) -> Slice:
        if self._refusal is not None:
            self._check_readable()
        self._check_range(offset)
        limit = self.last_stable_offset if committed else self.high_watermark
        buffers: list[bytes] = []
        size = 0
        next_offset = offset
        for batch, last_offset in self._batches_from(offset):
            if last_offset >= limit or (size + len(batch) > max_bytes and not (min_one and not buffers)):
                break
            buffers.append(batch)
            size += len(batch)
            next_offset = last_offset + 1
        aborted = self._aborted_between(offset, next_offset) if committed and buffers else []
        return Slice(
            buffers,
            size,
            self.high_watermark,
            self.last_stable_offset,
            self.log_start_offset,
            aborted,
            next_offset,
        )

    def _batches_from(self, offset: int) -> Iterator[tuple[bytes, int]]:
        for segment in self._segments[self._segment_index(offset) :]:
            first = bisect_left(segment.last_offsets, offset)
            for index in range(first, len(segment.batches)):
                yield segment.batches[index], segment.last_offsets[index]

    def timestamp_of(self, offset: int) -> int:
        self._check_readable()
        self._check_range(offset)
        for batch, _ in self._batches_from(offset):
            return read_header(batch).max_timestamp
        return -1

    def offset_for_timestamp(self, timestamp: int) -> TimestampOffset | None:
        for batch, last_offset in self._batches_from(self.log_start_offset):
            if last_offset >= self.high_watermark:
                break
            if read_header(batch).max_timestamp >= timestamp:
                for record in iter_records(batch):
                    if record.timestamp >= timestamp and record.offset >= self.log_start_offset:
                        return TimestampOffset(
                            record.timestamp, record.offset, read_header(batch).partition_leader_epoch
                        )
        return None

    def max_timestamp_offset(self) -> TimestampOffset | None:
        newest = max((segment.max_timestamp for segment in self._segments), default=-1)
        return self.offset_for_timestamp(newest) if newest >= 0 else None

    def flush(self) -> Pending[None]:
        return _DONE

    def close(self) -> None:
        self._refuse(StorageError(f"{self} is closed"))

    def delete(self) -> None:
        self._refuse(LogDeleted(f"{self.topic}-{self.partition} was deleted"))
        self._segments = [MemorySegment(self.log_end_offset, 0)]


class MemoryDirectory:
    """A data directory without files."""

    path = "memory"
    clean_start = True
    judges_transactions = False

    def __init__(self, *, now_ms: int = 0, settings: DirectoryConfig | None = None) -> None:
        self.config_source: Callable[[str], LogConfig | None] | None = None
        self.held: StorageError | None = None
        self._settings = settings or DirectoryConfig()
        self._logs: dict[tuple[str, int], MemoryLog] = {}
        self._next_retention_ms = now_ms + self._settings.retention_check_interval_ms
        self._next_producer_look_ms = now_ms
        self._next_compaction_ms = now_ms + self._settings.cleaner_backoff_ms
        self.compaction = CompactionStats()
        self.counts = DirectoryCounts()

    def log(
        self, topic_id: bytes, topic: str, partition: int, config: LogConfig, leader_epoch: int
    ) -> MemoryLog:
        log = self._logs.get((topic, partition))
        if log is None:
            log = self._logs[topic, partition] = MemoryLog(topic, partition, topic_id, config, leader_epoch)
        elif log.topic_id != topic_id:
            raise InconsistentTopicId(f"{topic}-{partition} belongs to another topic id")
        else:
            log.config = config
            log.set_leader_epoch(leader_epoch)
        return log

    def offsets(self, topic: str, partition: int) -> tuple[int, int]:
        log = self._logs.get((topic, partition))
        return (log.log_start_offset, log.log_end_offset) if log is not None else (0, 0)

    def delete_partition(self, topic: str, partition: int, topic_id: bytes) -> None:
        log = self._logs.get((topic, partition))
        if log is not None and log.topic_id == topic_id:
            del self._logs[topic, partition]
            log.delete()

    def partitions(self) -> list[tuple[str, int]]:
        return list(self._logs)

    def missing(self) -> list[tuple[str, int]]:
        return []

    def restore(self, topic: str, partition: int) -> None:
        pass

    def forget(self, topic: str, partition: int) -> None:
        pass

    def prepare_reads(self, wanted: Callable[[], Iterator[WantedRead]], max_bytes: int) -> None:
        return None

    def sizes(self) -> Iterator[PartitionSize]:
        for (topic, partition), log in self._logs.items():
            yield PartitionSize(topic, partition, log.size_bytes)

    def size_of(self, topic: str, partition: int) -> int:
        log = self._logs.get((topic, partition))
        return 0 if log is None else log.size_bytes

    def hold_appends(self, reason: StorageError | None) -> None:
        self.held = reason
        for log in self._logs.values():
            log.hold_appends(reason)

    def check_writable(self) -> Pending[None]:
        return _DONE

    @property
    def descriptors(self) -> int:
        return 0

    def begin_image(self, name: str) -> Image:
        raise ImageFailed("no image can be made: there are no files, everything is in memory")

    def remove_image(self, name: str) -> Pending[None]:
        return _DONE

    def total_bytes(self) -> int:
        return -1

    def usable_bytes(self) -> int:
        return -1

    def reconfigure(self, settings: DirectoryConfig) -> None:
        self._settings = settings

    def tick(self, now_ms: int) -> None:
        if now_ms >= self._next_retention_ms:
            self._next_retention_ms = now_ms + self._settings.retention_check_interval_ms
            for log in self._logs.values():
                log.apply_retention(now_ms)
                log.expire_producers(now_ms, self._settings.producer_id_expiration_ms)
        if now_ms >= self._next_producer_look_ms:
            self._next_producer_look_ms = now_ms + CHECK_INTERVAL_MS
            limit_producers(self._logs.values(), self._settings.max_producer_ids)
        if self._settings.cleaner_enable and now_ms >= self._next_compaction_ms:
            self._next_compaction_ms = now_ms + self._settings.cleaner_backoff_ms
            self._compact(now_ms)

    def _compact(self, now_ms: int) -> None:
        for log in self._logs.values():
            if log.config.compact and compact(log, self._settings, now_ms):
                assert log.last_compaction is not None
                self.compaction.add(log.last_compaction)

    def next_deadline(self) -> int:
        if not self._settings.cleaner_enable:
            return self._next_retention_ms
        return min(self._next_retention_ms, self._next_compaction_ms)

    def close(self) -> None:
        for log in self._logs.values():
            log.close()
