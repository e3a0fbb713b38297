"""Logs that give offsets later: what the broker must be able to work with, where others append as well.

A LateLog takes batches in their order and answers at once that it has them; offsets, refusals for sequence
numbers, refreshed offsets and records come when the LateDirectory delivers, in the order in which they were
asked for. What it says of its offsets is what it knew last, not what the log under it holds.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from kbroker.pending import Pending
from kbroker.protocol.records import BatchHeader
from kbroker.storage.config import DirectoryConfig, LogConfig
from kbroker.storage.counts import LogCounts
from kbroker.storage.errors import StorageError
from kbroker.storage.interface import (
    Appended,
    Assigned,
    EpochEndOffset,
    Image,
    LogTrace,
    LongAppend,
    PartitionSize,
    ProducerState,
    Slice,
    TimestampOffset,
    WantedRead,
)
from kbroker.storage.memory import MemoryDirectory, MemoryLog
from kbroker.storage.partition.append_rules import accept, accept_in_steps

T = TypeVar("T")


class LateLog:
    def __init__(self, directory: LateDirectory, inner: MemoryLog) -> None:
        self._directory = directory
        self.inner = inner
        self._watchers: dict[object, Callable[[], None]] = {}
        self._prepared: set[int] = set()  # the offsets at which the next read need not wait
        self._open_transactions: dict[int, int] = {}  # producer id → epoch, of what was accepted
        self._accepted_producers: set[int] = set()
        self._offsets = (-1, -1, -1)
        self._know()

    def _know(self) -> None:
        inner, before = self.inner, self._offsets
        self.log_start_offset = inner.log_start_offset
        self.log_end_offset = inner.log_end_offset
        self.high_watermark = inner.high_watermark
        self.last_stable_offset = inner.last_stable_offset
        self.size_bytes = inner.size_bytes
        self.latest_epoch = inner.latest_epoch
        self._offsets = (self.log_start_offset, self.last_stable_offset, self.high_watermark)
        if self._offsets != before:
            self.notify()

    def _later(self, work: Callable[[], T]) -> Pending[T]:
        def done() -> T:
            try:
                return work()
            finally:
                self._know()

        return self._directory.later(done)

    # what does not change, or is this broker's own

    @property
    def topic(self) -> str:
        return self.inner.topic

    @property
    def partition(self) -> int:
        return self.inner.partition

    @property
    def topic_id(self) -> bytes:
        return self.inner.topic_id

    @property
    def leader_epoch(self) -> int:
        return self.inner.leader_epoch

    @property
    def segment_count(self) -> int:
        return self.inner.segment_count

    @property
    def counts(self) -> LogCounts:
        return self.inner.counts

    @property
    def config(self) -> LogConfig:
        return self.inner.config

    @config.setter
    def config(self, config: LogConfig) -> None:
        self.inner.config = config

    @property
    def trace(self) -> LogTrace | None:
        return self.inner.trace

    @trace.setter
    def trace(self, trace: LogTrace | None) -> None:
        self.inner.trace = trace

    @property
    def shows_at_once(self) -> bool:
        return False

    def set_leader_epoch(self, leader_epoch: int) -> None:
        self.inner.set_leader_epoch(leader_epoch)

    # appending

    def append_as_leader(
        self, records: memoryview, now_ms: int, expected_offset: int | None = None
    ) -> Appended:
        self._check_open()
        return self._accepted(*accept(self.inner._rules, records, now_ms), now_ms, expected_offset)

    def append_in_steps(
        self, records: memoryview, now_ms: int, expected_offset: int | None = None
    ) -> LongAppend:
        records, header = yield from accept_in_steps(self.inner._rules, records, now_ms)
        self._check_open()
        return self._accepted(records, header, now_ms, expected_offset)

    def _accepted(
        self, records: memoryview, header: BatchHeader, now_ms: int, expected_offset: int | None
    ) -> Appended:
        kept = memoryview(bytearray(records))
        if header.producer_id >= 0:
            self._accepted_producers.add(header.producer_id)
            if header.is_transactional:
                self._open_transactions[header.producer_id] = header.producer_epoch
        return self._appended(lambda: self.inner._append_checked(kept, header, now_ms, expected_offset))

    def append_control(self, producer_id: int, producer_epoch: int, **fields: Any) -> Appended:
        self._check_open()
        self._open_transactions.pop(producer_id, None)
        return self._appended(lambda: self.inner.append_control(producer_id, producer_epoch, **fields))

    def _appended(self, append: Callable[[], Appended]) -> Appended:
        def assigned() -> Assigned:
            appended = append()
            return Assigned(*appended[:4])

        durable: Pending[Assigned | None] = self._later(assigned)  # type: ignore[assignment]
        return Appended(-1, -1, -1, self.log_start_offset, False, durable)

    def _check_open(self) -> None:
        if self.inner._refusal is not None:
            raise self.inner._refusal

    # reading

    def refresh(self) -> Pending[None]:
        return self._later(lambda: None)

    def prepare(self, offset: int) -> None:
        self._prepared.add(offset)
        self._know()

    def read(self, offset: int, max_bytes: int, **how: Any) -> Slice | Pending[Slice]:
        if offset in self._prepared:
            self._prepared.remove(offset)
            return self.inner.read(offset, max_bytes, **how)
        self._directory.unprepared_reads += 1
        return self._later(lambda: self.inner.read(offset, max_bytes, **how))

    def timestamp_of(self, offset: int) -> Pending[int]:
        return self._later(lambda: self.inner.timestamp_of(offset))

    def offset_for_timestamp(self, timestamp: int) -> Pending[TimestampOffset | None]:
        return self._later(lambda: self.inner.offset_for_timestamp(timestamp))

    def max_timestamp_offset(self) -> Pending[TimestampOffset | None]:
        return self._later(self.inner.max_timestamp_offset)

    def end_offset_for_epoch(self, leader_epoch: int) -> EpochEndOffset:
        return self.inner.end_offset_for_epoch(leader_epoch)

    def delete_records_before(self, offset: int) -> Pending[int]:
        return self._later(lambda: self.inner.delete_records_before(offset))

    # producers

    def producers(self) -> Pending[list[ProducerState]]:
        return self._later(self.inner.producers)

    def has_ongoing_transaction(self, producer_id: int, producer_epoch: int) -> bool:
        return self._open_transactions.get(producer_id) == producer_epoch

    def has_batches_of(self, producer_id: int) -> bool:
        return producer_id in self._accepted_producers

    # the rest

    def close(self) -> None:
        self.inner.close()

    def watch(self, callback: Callable[[], None]) -> Callable[[], None]:
        token = object()
        self._watchers[token] = callback
        return lambda: self._watchers.pop(token, None) and None

    def notify(self) -> None:
        for callback in list(self._watchers.values()):
            callback()


class LateDirectory:
    """`schedule`: arranges for one `deliver`, some time; without it the test delivers."""

    path = "late"
    clean_start = True
    descriptors = 0

    def __init__(
        self,
        *,
        now_ms: int = 0,
        settings: DirectoryConfig | None = None,
        schedule: Callable[[Callable[[], None]], object] | None = None,
    ) -> None:
        self.inner = MemoryDirectory(now_ms=now_ms, settings=settings)
        self.counts, self.compaction = self.inner.counts, self.inner.compaction
        self.config_source: Callable[[str], LogConfig | None] | None = None
        self.judges_transactions = False
        self.unprepared_reads = 0
        self._schedule = schedule
        self._logs: dict[tuple[bytes, int], LateLog] = {}
        self._waiting: deque[Callable[[], None]] = deque()

    def later(self, work: Callable[[], T]) -> Pending[T]:
        pending: Pending[T] = Pending()

        def settle() -> None:
            try:
                value = work()
            except Exception as error:
                pending.fail(error)
            else:
                pending.resolve(value)

        self._waiting.append(settle)
        if self._schedule is not None:
            self._schedule(self.deliver)
        return pending

    def deliver(self) -> None:
        """What was asked for first."""
        self._waiting.popleft()()

    def deliver_all(self) -> None:
        while self._waiting:
            self.deliver()

    def log(
        self, topic_id: bytes, topic: str, partition: int, config: LogConfig, leader_epoch: int
    ) -> LateLog:
        inner = self.inner.log(topic_id, topic, partition, config, leader_epoch)
        return self._logs.setdefault((topic_id, partition), LateLog(self, inner))

    def prepare_reads(
        self, wanted: Callable[[], Iterator[WantedRead]], max_bytes: int
    ) -> Pending[None] | None:
        reads = list(wanted())

        def prepare() -> None:
            for read in reads:
                read.log.prepare(read.offset)  # type: ignore[attr-defined]

        return self.later(prepare) if reads else None

    def delete_partition(self, topic: str, partition: int, topic_id: bytes) -> None:
        self.inner.delete_partition(topic, partition, topic_id)
        deleted = self._logs.pop((topic_id, partition), None)
        if deleted is not None:
            deleted.notify()

    def offsets(self, topic: str, partition: int) -> tuple[int, int]:
        return self.inner.offsets(topic, partition)

    def partitions(self) -> list[tuple[str, int]]:
        return self.inner.partitions()

    def missing(self) -> list[tuple[str, int]]:
        return []

    def restore(self, topic: str, partition: int) -> None:
        pass

    def forget(self, topic: str, partition: int) -> None:
        pass

    def sizes(self) -> Iterator[PartitionSize]:
        return self.inner.sizes()

    def size_of(self, topic: str, partition: int) -> int:
        return self.inner.size_of(topic, partition)

    def hold_appends(self, reason: StorageError | None) -> None:
        self.inner.hold_appends(reason)

    @property
    def held(self) -> StorageError | None:
        return self.inner.held

    def check_writable(self) -> Pending[None]:
        return self.inner.check_writable()

    def begin_image(self, name: str) -> Image:
        return self.inner.begin_image(name)

    def remove_image(self, name: str) -> Pending[None]:
        return self.inner.remove_image(name)

    def total_bytes(self) -> int:
        return -1

    def usable_bytes(self) -> int:
        return -1

    def reconfigure(self, settings: DirectoryConfig) -> None:
        self.inner.reconfigure(settings)

    def tick(self, now_ms: int) -> None:
        self.inner.tick(now_ms)

    def next_deadline(self) -> int:
        return self.inner.next_deadline()

    def close(self) -> None:
        self.inner.close()
