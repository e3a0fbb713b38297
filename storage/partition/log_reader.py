"""Finding and reading batches in the segments of a log.

A read returns one buffer of whole batches from one segment, and never what lies at or above its limit. Reads
are tried without waiting for the disk (`wait=False`): what is not in the page cache raises WouldBlock, and
the log tries again once a worker has loaded it. Where a reader will go on is remembered, to save the search.

What is only to be sent (`sendable`) and comes from the disk is not read but returned as a FileRange, and of
its batches only the first and the last are looked at: the first look at a page costs more than all else. The
kernel reads ahead, so that a reader of old batches finds much in the page cache that nobody has looked at:
once it had to wait for the disk, all that it goes on with is loaded, by a worker, and sent that way.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, NamedTuple

from kbroker.protocol.records import CorruptRecord, iter_records
from kbroker.protocol.records.batch import (
    BATCH_OVERHEAD,
    LAST_OFFSET_DELTA_POSITION,
    LOG_OVERHEAD,
    MAGIC,
    MAGIC_POSITION,
    BatchHeader,
    read_header,
    unpack_last_offset_delta,
    unpack_start,
)
from kbroker.storage.files import Files, WouldBlock
from kbroker.storage.interface import Buffer, TimestampOffset
from kbroker.storage.segments.file_range import FileRange
from kbroker.storage.segments.file_segment import FileSegment
from kbroker.storage.worker import InlineWorker, Worker

if TYPE_CHECKING:
    from collections.abc import Sequence

logger = logging.getLogger("kbroker.storage")

_HINTS = 128
_SEARCH_BYTES = 8 * 1024  # what a search may have to pass over from an index entry on, in most logs
_WALK_BATCHES = 32  # then it is known how large they are
_WALK_ON_BATCHES = 128  # so many more are sooner walked over than asked of the index
_TRIED_ENTRIES = 8  # of an index that turns out to be wrong
_RANGE_BYTES = 64 * 1024  # less is sooner read than sent from the file
_SHORT_RECORDS = 1000  # uncompressed, are searched at once


class Place(NamedTuple):
    """A batch boundary: nothing at or behind it is read."""

    segment: FileSegment
    position: int


class Wanted(NamedTuple):
    offset: int
    max_bytes: int
    min_one: bool  # the first batch whatever its size
    sendable: bool  # a FileRange will do
    unread: bool = False  # … and is better, also for what is in the page cache


class _Hint(NamedTuple):
    """Where the batch starts that a reader will ask for, and whether those before it came from the disk."""

    segment: FileSegment
    position: int
    cold: bool


class Found(NamedTuple):
    data: memoryview | FileRange
    next_offset: int


class LogReader:
    def __init__(self, files: Files, worker: Worker | None = None, *, report: bool = True) -> None:
        self._files = files
        self._worker = worker or InlineWorker()
        self._report = report
        self._hints: dict[int, _Hint] = {}  # by the offset that the batch begins with
        self._limit: tuple[int, Place] | None = None  # the last one that was looked for, and where it is
        self._reported: set[tuple[int, int]] = set()  # damage is told of once
        self._searched: _LongSearch | None = None  # for a timestamp, on a worker, and not asked about since

    def forget(self) -> None:
        """Segments were cut, replaced or deleted."""
        self._hints.clear()
        self._limit = None

    def remember(self, offset: int, segment: FileSegment, position: int, *, cold: bool = False) -> None:
        hints = self._hints
        hints[offset] = _Hint(segment, position, cold)
        if len(hints) > _HINTS:
            del hints[next(iter(hints))]

    # reading batches

    def read(
        self,
        segments: Sequence[FileSegment],
        index: int,
        wanted: Wanted,
        limit: Place,
        *,
        wait: bool,
        loaded: bool,
    ) -> Found | None:
        """Batches from the one that holds the offset; `index` is its segment's. None: there are none.

        `loaded`: a worker has loaded what was not in the page cache.
        """
        offset, max_bytes, min_one, sendable, unread = wanted
        if not max_bytes and not min_one:
            return None
        hint = self._hints.get(offset)
        if hint is not None:
            segment, position, cold = hint
            end = limit.position if segment is limit.segment else segment.size_bytes
            size = min(max_bytes, end - position)
            if (cold or unread) and sendable and not loaded and size >= _RANGE_BYTES:
                raise WouldBlock(segment.handle, size, position)
            if position < end:
                found = self._range(segment, position, end, wanted, wait) if sendable and loaded else None
                return found or self._read_at(segment, position, end, wanted, wait)
        for segment in segments[index:]:
            last = segment is limit.segment
            end = limit.position if last else segment.size_bytes
            position = self._start(segment, offset, wait)
            if position < end:
                size = min(max_bytes, end - position)
                if unread and sendable and not loaded and size >= _RANGE_BYTES:
                    raise WouldBlock(segment.handle, size, position)
                found = self._range(segment, position, end, wanted, wait) if sendable and loaded else None
                found = found or self._read_behind(segment, position, end, wanted, wait)
                if found is not None:
                    return found
            if segment.corrupt and offset < segment.corrupt[-1].next_offset:
                raise self._damaged(segment, segment.size_bytes, "records are missing")
            if last:
                break
        return None

    def _start(self, segment: FileSegment, offset: int, wait: bool) -> int:
        """A batch boundary at or before the batch that holds `offset`."""
        if offset <= segment.base_offset:
            return 0
        key = min(offset - segment.base_offset, 2**32 - 1)
        for _ in range(_TRIED_ENTRIES):
            entry = segment.index.floor(key, wait=wait)
            if entry is None or self._is_right(segment, entry, wait):
                break
            key = entry[0] - 1
        else:
            entry = None
        start = entry[1] if entry is not None else 0
        for damage in segment.corrupt:
            if offset >= damage.next_offset:
                start = max(start, damage.end)
        return start

    def _is_right(self, segment: FileSegment, entry: tuple[int, int], wait: bool) -> bool:
        """Whether an index entry points at a batch that begins at or below its offset."""
        offset, position = entry
        if position < segment.size_bytes:
            data = self._read(segment, BATCH_OVERHEAD, position, wait)
            if len(data) == BATCH_OVERHEAD and data[MAGIC_POSITION] == MAGIC:
                base_offset, _ = unpack_start(data)
                if segment.base_offset <= base_offset <= segment.base_offset + offset:
                    return True
        place = (segment.base_offset, -1)
        if self._report and place not in self._reported:
            self._reported.add(place)
            logger.error("%s is wrong: kbroker verify --repair makes it again", segment.index.file.path)
        return False

    def _read_at(self, segment: FileSegment, position: int, end: int, wanted: Wanted, wait: bool) -> Found:
        """The batches from the one at `position` on, which holds the offset."""
        if segment.corrupt:
            end = self._before_damage(segment, position, end, wanted.offset)
        size = min(max(wanted.max_bytes, BATCH_OVERHEAD), end - position)
        buffer = self._read(segment, size, position, wait)
        return self._whole_batches(segment, buffer, position, end, wanted, wait)

    def _read_behind(
        self, segment: FileSegment, position: int, end: int, wanted: Wanted, wait: bool
    ) -> Found | None:
        """The same, but batches from `position` on may have to be passed over first."""
        offset, max_bytes, *_ = wanted
        whole_end = end
        while position < whole_end:
            if segment.corrupt:
                end = self._before_damage(segment, position, whole_end, offset)
            size = min(max(max_bytes + _SEARCH_BYTES, BATCH_OVERHEAD), end - position)
            buffer = self._read(segment, size, position, wait)
            passed = self._pass_over(segment, buffer, position, end, offset)
            position += passed
            if passed + BATCH_OVERHEAD <= len(buffer):
                rest = memoryview(buffer)[passed:]
                return self._whole_batches(segment, rest, position, end, wanted, wait)
        return None

    def _whole_batches(
        self, segment: FileSegment, buffer: Buffer, position: int, end: int, wanted: Wanted, wait: bool
    ) -> Found:
        """Those of a buffer that was read at `position`, up to max_bytes."""
        offset, max_bytes, min_one, *_ = wanted
        first = self._batch_size(segment, buffer, 0, position, end)
        if first > max_bytes and not min_one:
            return Found(memoryview(b""), offset)
        if first > max_bytes or first > len(buffer):
            buffer = self._read_whole(segment, first, position, wait)
        stop, last = self._cut(segment, buffer, max(min(max_bytes, len(buffer)), first), position)
        return self._found(segment, position, memoryview(buffer)[:stop], last)

    def _range(
        self, segment: FileSegment, position: int, end: int, wanted: Wanted, wait: bool
    ) -> Found | None:
        """The batches where they are, from the first that reaches the offset on; None: they must be read."""
        offset, max_bytes, min_one, _, unread = wanted
        if segment.corrupt or min(max_bytes, end - position) < _RANGE_BYTES:
            return None
        batches = self.headers(segment, position, end, wait=wait)
        first = next((batch for batch in batches if batch[1].last_offset >= offset), None)
        if first is None:
            return None
        start, header = first
        target = min(start + max_bytes, end)
        stop, next_offset = start + header.size_bytes, header.next_offset
        entry = segment.index.floor_by_value(max(target - 1, 0), wait=wait)
        if entry is not None and entry[1] > stop:
            stop = entry[1]
        for place, header in self.headers(segment, stop, end, wait=wait):
            if place + header.size_bytes > target:
                next_offset = header.base_offset
                break
            stop, next_offset = place + header.size_bytes, header.next_offset
        if stop - start < _RANGE_BYTES or (stop - start > max_bytes and not (unread and min_one)):
            return None
        self.remember(next_offset, segment, stop, cold=True)
        return Found(FileRange(self._files, self._worker, segment.handle, start, stop - start), next_offset)

    def _found(self, segment: FileSegment, position: int, view: memoryview, last: int) -> Found:
        base_offset, _ = unpack_start(view, last)
        (delta,) = unpack_last_offset_delta(view, last + LAST_OFFSET_DELTA_POSITION)
        next_offset = base_offset + delta + 1
        self.remember(next_offset, segment, position + len(view))
        return Found(view, next_offset)

    def _read(self, segment: FileSegment, size: int, position: int, wait: bool) -> Buffer:
        if wait:
            return self._files.read_at(segment.handle, size, position)
        buffer = self._files.read_cached(segment.handle, size, position)
        if len(buffer) < min(size, BATCH_OVERHEAD):
            raise WouldBlock(segment.handle, size, position)
        return buffer

    def _read_whole(self, segment: FileSegment, size: int, position: int, wait: bool) -> Buffer:
        read: Callable[..., Buffer] = self._files.read_at if wait else self._files.read_cached
        buffer = read(segment.handle, size, position)
        if len(buffer) < size:
            if wait:
                raise CorruptRecord(f"{segment.file.path} ends within the batch at {position}")
            raise WouldBlock(segment.handle, size, position)
        return buffer

    def _batch_size(self, segment: FileSegment, buffer: Buffer, start: int, position: int, end: int) -> int:
        """The size that the batch at `start` of a buffer read at `position` says it has."""
        if len(buffer) - start < BATCH_OVERHEAD:
            raise self._damaged(segment, position + start, "the segment ends within a batch header")
        _, length = unpack_start(buffer, start)
        size = LOG_OVERHEAD + length
        if size < BATCH_OVERHEAD or buffer[start + MAGIC_POSITION] != MAGIC or position + start + size > end:
            raise self._damaged(segment, position + start, f"no batch header: {length} bytes")
        return int(size)

    def _pass_over(self, segment: FileSegment, buffer: Buffer, position: int, end: int, offset: int) -> int:
        """How many bytes of batches come before the first one whose last offset is at or above `offset`."""
        start = 0
        while True:
            size = self._batch_size(segment, buffer, start, position, end)
            base_offset, _ = unpack_start(buffer, start)
            (delta,) = unpack_last_offset_delta(buffer, start + LAST_OFFSET_DELTA_POSITION)
            if base_offset + delta >= offset:
                return start
            start += size
            if start + BATCH_OVERHEAD > len(buffer):
                return start

    def _cut(self, segment: FileSegment, buffer: Buffer, length: int, position: int) -> tuple[int, int]:
        """Where the last whole batch before `length` ends, and where it starts."""
        unpack = unpack_start
        stop = last = 0
        walked = 0
        while length - stop >= LOG_OVERHEAD:
            size = LOG_OVERHEAD + unpack(buffer, stop)[1]
            if size < BATCH_OVERHEAD:
                raise self._damaged(segment, position + stop, f"a batch of {size} bytes")
            if stop + size > length:
                break
            last = stop
            stop += size
            walked += 1
            if walked == _WALK_BATCHES and (length - stop) * walked > _WALK_ON_BATCHES * stop:
                stop = self._jump(segment, buffer, stop, length, position)
        return stop, last

    def _jump(self, segment: FileSegment, buffer: Buffer, stop: int, length: int, position: int) -> int:
        """Among many small batches, one near the end that the index knows and that ends before `length`."""
        target = position + length
        for _ in range(2):
            try:
                entry = segment.index.floor_by_value(target, wait=False)
            except (WouldBlock, OSError, EOFError):
                return stop
            if entry is None or entry[1] - position <= stop:
                return stop
            start = entry[1] - position
            if start + LOG_OVERHEAD <= length:
                _, size = unpack_start(buffer, start)
                if size >= BATCH_OVERHEAD - LOG_OVERHEAD and start + LOG_OVERHEAD + size <= length:
                    return start
            target = entry[1] - 1
        return stop

    def _before_damage(self, segment: FileSegment, position: int, end: int, offset: int) -> int:
        """How far batches can be read from `position` on, for who asked for `offset`."""
        for damage in segment.corrupt:
            if position < damage.start:
                return min(end, damage.start)
            if position < damage.end or offset < damage.next_offset:
                raise self._damaged(segment, damage.start, "damaged, as found when the log was opened")
        return end

    def _damaged(self, segment: FileSegment, position: int, what: str) -> CorruptRecord:
        place = (segment.base_offset, position)
        if self._report and place not in self._reported:
            self._reported.add(place)
            logger.error("%s is damaged at position %d: %s", segment.file.path, position, what)
        return CorruptRecord(f"{segment.file.path} at position {position}: {what}")

    # finding batches

    def headers(
        self, segment: FileSegment, position: int, end: int, *, wait: bool
    ) -> Iterator[tuple[int, BatchHeader]]:
        """Position and header of each batch from a boundary on."""
        buffer: Buffer = b""
        start = 0
        while position < end:
            if position + BATCH_OVERHEAD > start + len(buffer):
                for damage in segment.corrupt:
                    if damage.start <= position < damage.end:
                        raise self._damaged(segment, position, "damaged, as found when the log was opened")
                start = position
                buffer = self._read(segment, min(_SEARCH_BYTES, end - position), position, wait)
            size = self._batch_size(segment, buffer, position - start, start, end)
            yield position, read_header(buffer, position - start)
            position += size

    def timestamp_of(self, segments: Sequence[FileSegment], index: int, offset: int, *, wait: bool) -> int:
        """The largest of the first batch that holds an offset at or above `offset`; -1: there is none."""
        for segment in segments[index:]:
            start = self._start(segment, offset, wait)
            for _, header in self.headers(segment, start, segment.size_bytes, wait=wait):
                if header.last_offset >= offset:
                    return header.max_timestamp
        return -1

    def place_of(self, segments: Sequence[FileSegment], index: int, offset: int, *, wait: bool) -> Place:
        """Where the first batch starts that holds an offset at or above `offset`."""
        for segment in segments[index:]:
            start = self._start(segment, offset, wait)
            for position, header in self.headers(segment, start, segment.size_bytes, wait=wait):
                if header.last_offset >= offset:
                    return Place(segment, position)
        return Place(segments[-1], segments[-1].size_bytes)

    def place_of_limit(self, segments: Sequence[FileSegment], index: int, limit: int, *, wait: bool) -> Place:
        """Where the batches below an offset end that stays the same for many reads."""
        if self._limit is None or self._limit[0] != limit:
            self._limit = limit, self.place_of(segments, index, limit, wait=wait)
        return self._limit[1]

    def offset_for_timestamp(
        self, segments: Sequence[FileSegment], timestamp: int, start_offset: int, limit: int, *, wait: bool
    ) -> TimestampOffset | None:
        """The first record at or above `timestamp`, from `start_offset` on and below `limit`."""
        for segment in segments:
            if segment.largest_timestamp() < timestamp:
                continue
            entry = segment.time_index.floor(timestamp, wait=wait)
            # The entry's batch has the largest timestamp so far, which may be the searched one itself.
            offset = segment.base_offset + (entry[1] if entry is not None and entry[0] < timestamp else 0)
            start = self._start(segment, max(offset, start_offset), wait)
            for position, header in self.headers(segment, start, segment.size_bytes, wait=wait):
                if header.base_offset >= limit:
                    return None
                if header.max_timestamp >= timestamp and header.last_offset >= start_offset:
                    batch = self._read_whole(segment, header.size_bytes, position, wait)
                    place = (segment.base_offset, position, timestamp, start_offset)
                    found = self._search(place, segment, batch, header, wait)
                    if found is not None:
                        return found
        return None

    def _search(
        self,
        place: tuple[int, int, int, int],
        segment: FileSegment,
        batch: Buffer,
        header: BatchHeader,
        wait: bool,
    ) -> TimestampOffset | None:
        """The first record of a batch at or above a timestamp and an offset."""
        searched, self._searched = self._searched, None
        if searched is not None and searched.place == place:
            return searched.found
        short = header.record_count <= _SHORT_RECORDS and not header.codec
        if short or wait:
            return _first_record(batch, *place[2:])
        self._searched = _LongSearch(place, segment, batch)
        raise self._searched


class _LongSearch(WouldBlock):
    """A batch that may hide much is searched on a worker."""

    def __init__(self, place: tuple[int, int, int, int], segment: FileSegment, batch: Buffer) -> None:
        super().__init__(segment.handle, len(batch), place[1])
        self.place = place
        self.found: TimestampOffset | None = None
        self._batch: Buffer | None = batch

    def load(self, files: Files) -> None:
        assert self._batch is not None
        self.found = _first_record(self._batch, *self.place[2:])
        self._batch = None


def _first_record(batch: Buffer, timestamp: int, start_offset: int) -> TimestampOffset | None:
    for record in iter_records(batch):
        if record.timestamp >= timestamp and record.offset >= start_offset:
            epoch = read_header(batch).partition_leader_epoch
            return TimestampOffset(record.timestamp, record.offset, epoch)
    return None
