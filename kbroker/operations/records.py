"""The records of partitions, for readers that know nothing of batches.

Left out are records before the wanted offset, control records and, in a committed read, aborted ones. A wait
ends with a record, not with what is left out.

Invariants:
- What comes back is bounded in records and bytes; the first record comes whatever its size, so that a reader
  always gets on. `next_offset` is where to go on, also when everything was left out.
- Batches are decompressed one at a time, large ones on a worker; what is held for that counts in the budget.
  Decoding takes turns with others.
- What comes back counts in nobody's budget any more: who keeps it takes its `size_bytes`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from kbroker.errors import describe
from kbroker.operations.aborted import AbortedBatches
from kbroker.operations.reading import Fetching, PartitionRead, ReadFrom
from kbroker.pending import Pending, mapped, wait
from kbroker.protocol.errors import ApiError, ErrorCode
from kbroker.protocol.records import (
    MAX_DECOMPRESSED_BYTES,
    BatchHeader,
    DecompressedTooLarge,
    Record,
    RecordError,
    iter_batches,
    iter_payload,
    payload_of,
)
from kbroker.requests.long_requests import Steps, holding
from kbroker.security.acls import AclOperation
from kbroker.storage.errors import StorageError

if TYPE_CHECKING:
    from kbroker.broker import Broker
    from kbroker.requests.resources import Resources, TopicKey
    from kbroker.storage.interface import Slice

MOST_RECORDS = 10_000
_PER_PAUSE = 64  # records, or batches that are left out
_AT_ONCE_BYTES = 16 * 1024  # compressed, that are decompressed without a worker …
_AT_ONCE_LIMIT = 128 * 1024  # … if they do not make more than this
_LIKELY_RATIO = 16  # what compressed records mostly make at most, of their bytes
_LIKELY_BYTES = 1024 * 1024
_RECORD_BYTES, _HEADER_BYTES = 300, 150  # of Python's objects, besides contents


class RecordsRead(NamedTuple):
    """What one partition was found to hold."""

    topic: TopicKey
    partition: int
    records: Sequence[Record]
    next_offset: int
    high_watermark: int
    last_stable_offset: int
    log_start_offset: int
    size_bytes: int
    """About what the records take in memory."""
    error: ApiError | None = None
    """Why it could not be read. The offsets are then -1, unless only the wanted one is wrong."""


class Room:
    """What one read may still take; the first record always may."""

    __slots__ = ("bytes", "records", "size_bytes", "taken")

    def __init__(self, max_records: int, max_bytes: int) -> None:
        self.records, self.bytes = max_records, max_bytes
        self.taken = 0  # records
        self.size_bytes = 0
        """About what they take in memory."""

    @property
    def full(self) -> bool:
        return self.records <= 0 or (self.bytes <= 0 and self.taken > 0)

    def take(self, record: Record) -> bool:
        """Whether it has its place."""
        size = _content_bytes(record)
        if self.records <= 0 or (size > self.bytes and self.taken):
            self.records = 0  # what comes later must not overtake it
            return False
        self.records -= 1
        self.bytes -= size
        self.taken += 1
        self.size_bytes += size + _RECORD_BYTES + _HEADER_BYTES * len(record.headers)
        return True


def _content_bytes(record: Record) -> int:
    size = len(record.key or b"") + len(record.value or b"")
    for name, value in record.headers:
        size += len(name) + len(value or b"")
    return size


def record_bytes(record: Record) -> int:
    """About what it takes in memory."""
    return _content_bytes(record) + _RECORD_BYTES + _HEADER_BYTES * len(record.headers)


def read_records(
    resources: Resources,
    wanted: ReadFrom,
    *,
    max_records: int = MOST_RECORDS,
    max_wait_ms: int = 0,
    committed: bool = False,
) -> RecordsRead | Pending[RecordsRead]:
    """Records of one partition, up to ``wanted.max_bytes`` of keys, values and headers, once there are any.

    What keeps them from being read raises, or fails the Pending with, ApiError.
    """
    read = read_partitions(
        resources,
        [wanted],
        max_records=max_records,
        max_bytes=wanted.max_bytes,
        max_wait_ms=max_wait_ms,
        committed=committed,
    )
    return mapped(read, _only)


def _only(reads: list[RecordsRead]) -> RecordsRead:
    (read,) = reads
    if read.error is not None:
        raise read.error
    return read


def read_partitions(
    resources: Resources,
    wanted: Sequence[ReadFrom],
    *,
    max_records: int = MOST_RECORDS,
    max_bytes: int,
    max_wait_ms: int = 0,
    committed: bool = False,
) -> list[RecordsRead] | Pending[list[RecordsRead]]:
    """Records of several partitions under one limit, those named first before the others.

    The wait ends with the first record, or with a partition that cannot be read.
    """
    room = Room(min(max_records, MOST_RECORDS), max_bytes)
    steps = _read(resources, [replace(each) for each in wanted], room, max_wait_ms, committed=committed)
    return resources.broker.long_requests.run(steps)


def _read(
    resources: Resources, wanted: list[ReadFrom], room: Room, max_wait_ms: int, *, committed: bool
) -> Steps[list[RecordsRead]]:
    broker = resources.broker
    deadline_ms = broker.clock() + max_wait_ms
    while True:
        left_ms = max(0, deadline_ms - broker.clock()) if max_wait_ms else 0
        fetched = Fetching(
            resources,
            wanted,
            min_bytes=1,
            max_bytes=room.bytes,
            max_wait_ms=left_ms,
            committed=committed,
            sendable=False,
        ).start()
        reads = (yield from wait(fetched)) if isinstance(fetched, Pending) else fetched
        found = yield from _records_of_all(resources, reads, room, committed=committed)
        if room.taken or not left_ms or any(each.error for each in found):
            return found
        for each, read in zip(found, wanted, strict=True):
            read.fetch_offset = each.next_offset
        yield None


def _records_of_all(
    resources: Resources, reads: list[PartitionRead[ReadFrom]], room: Room, *, committed: bool
) -> Steps[list[RecordsRead]]:
    budget = resources.broker.budget
    held = sum(read.slice.size_bytes for read in reads if read.slice is not None)
    if held:
        held += max(room.bytes, 0)
    budget.take(held)
    found: list[RecordsRead] = []
    try:
        for read in reads:
            one = yield from _of_one(resources, read, room, committed=committed)
            found.append(one)
    finally:
        budget.give_back(held)
    return found


def _of_one(
    resources: Resources, read: PartitionRead[ReadFrom], room: Room, *, committed: bool
) -> Steps[RecordsRead]:
    asked, got = read.asked, read.slice
    if got is None:
        return _failed(resources, asked, ApiError(read.error))
    before = room.size_bytes
    try:
        records, next_offset = yield from records_of(
            resources.broker, got, asked.fetch_offset, room, committed=committed
        )
    except RecordError as error:
        return _failed(resources, asked, ApiError(*describe(error)))
    return RecordsRead(
        asked.topic,
        asked.partition,
        records,
        next_offset,
        got.high_watermark,
        got.last_stable_offset,
        got.log_start_offset,
        room.size_bytes - before,
    )


def _failed(resources: Resources, asked: ReadFrom, error: ApiError) -> RecordsRead:
    offsets = (-1, -1, -1)
    if error.code is ErrorCode.OFFSET_OUT_OF_RANGE:
        try:
            log = resources.log_of(resources.topic(asked.topic, AclOperation.READ), asked.partition)
        except (ApiError, StorageError):
            pass  # it has gone meanwhile
        else:
            offsets = (log.high_watermark, log.last_stable_offset, log.log_start_offset)
    return RecordsRead(asked.topic, asked.partition, (), asked.fetch_offset, *offsets, 0, error)


def records_of(
    broker: Broker, read: Slice, offset: int, room: Room, *, committed: bool
) -> Steps[tuple[list[Record], int]]:
    """The records from the offset on that have room, and where to go on.

    Damage behind them is left to the next read.
    """
    hidden = AbortedBatches(read.aborted) if committed else None
    found: list[Record] = []
    count = 0
    for buffer in read.buffers:
        view = memoryview(buffer)  # type: ignore[arg-type]  # no FileRange: they were not asked for
        for position, header in iter_batches(view):
            count += 1
            if not count % _PER_PAUSE:
                yield None
            batch = view[position : position + header.size_bytes]
            if (hidden is not None and hidden.holds(header, batch)) or header.is_control:
                continue
            if header.last_offset < offset or not header.record_count:
                continue
            if room.full:
                return found, max(offset, header.base_offset)
            try:
                full_at = yield from _take(broker, batch, header, offset, room, found)
            except RecordError:
                if not found:
                    raise
                return found, max(found[-1].offset + 1, header.base_offset)
            if full_at is not None:
                return found, full_at
    return found, max(offset, read.next_offset)


def _take(
    broker: Broker, batch: memoryview, header: BatchHeader, offset: int, room: Room, found: list[Record]
) -> Steps[int | None]:
    """The records of one batch. Returns the offset of the first that has no room, if one has none."""
    if not header.codec:
        return (yield from _decode(payload_of(batch, header), header, offset, room, found))
    if len(batch) <= _AT_ONCE_BYTES:
        try:
            payload = payload_of(batch, header, _AT_ONCE_LIMIT)
        except DecompressedTooLarge:
            pass
        else:
            return (yield from _decode(payload, header, offset, room, found))
    likely = min(max(_LIKELY_RATIO * len(batch), _LIKELY_BYTES), MAX_DECOMPRESSED_BYTES)
    try:
        return (yield from _take_on_worker(broker, batch, header, offset, room, found, likely))
    except DecompressedTooLarge:
        if likely == MAX_DECOMPRESSED_BYTES:
            raise
    most = MAX_DECOMPRESSED_BYTES
    return (yield from _take_on_worker(broker, batch, header, offset, room, found, most))


def _take_on_worker(
    broker: Broker,
    batch: memoryview,
    header: BatchHeader,
    offset: int,
    room: Room,
    found: list[Record],
    limit: int,
) -> Steps[int | None]:
    def steps() -> Steps[int | None]:
        payload = yield from wait(broker.worker.run(partial(payload_of, batch, header, limit)))
        return (yield from _decode(payload, header, offset, room, found))

    return holding(broker.budget, min(limit, broker.budget.limit // 2), steps())


def _decode(
    payload: bytes, header: BatchHeader, offset: int, room: Room, found: list[Record]
) -> Steps[int | None]:
    for count, record in enumerate(iter_payload(payload, header), 1):
        if record.offset >= offset:
            if not room.take(record):
                return record.offset
            found.append(record)
        if not count % _PER_PAUSE:
            yield None
    return None
