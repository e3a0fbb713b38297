"""Compacting a log that has no files, in place, with the rules of the others."""

from __future__ import annotations

import time
from collections.abc import Generator, Iterator
from typing import TYPE_CHECKING

from kbroker.protocol.records import BatchHeader, read_header
from kbroker.storage.compaction.batch_filter import BatchFilter, LastOfProducer
from kbroker.storage.compaction.cleanable import find_cleanable, first_dirty_offset
from kbroker.storage.compaction.cleaner import fill_map
from kbroker.storage.compaction.jobs import CompactionStats
from kbroker.storage.compaction.offset_map import OffsetMap
from kbroker.storage.compaction.transactions import CleanedTransactions

if TYPE_CHECKING:
    from kbroker.storage.config import DirectoryConfig
    from kbroker.storage.memory import MemoryLog, MemorySegment


def compact(log: MemoryLog, settings: DirectoryConfig, now_ms: int) -> bool:
    """Compact the log if it is worth it; returns whether it was."""
    steps = compact_in_steps(log, settings, now_ms)
    try:
        while True:
            next(steps)
    except StopIteration as done:
        return bool(done.value)


def compact_in_steps(log: MemoryLog, settings: DirectoryConfig, now_ms: int) -> Generator[None, None, bool]:
    """The same, with a pause after every batch. What is appended meanwhile is left alone."""
    dirty = first_dirty_offset(log.first_dirty_offset, log.log_start_offset, log.log_end_offset)
    part = find_cleanable(log.segments, log.config, dirty, log.last_stable_offset, now_ms)
    if part is None:
        return False
    started = time.monotonic()
    end = part.first_uncleanable_offset
    segments = [segment for segment in log.segments if segment.base_offset < end]
    aborted = log.aborted_before(end)
    latest = OffsetMap(
        settings.cleaner_dedupe_buffer_bytes, settings.cleaner_dedupe_load_factor, records=end - dirty
    )
    entered = CleanedTransactions(aborted)
    for batch in _batches(segments):
        if not fill_map(latest, (batch,), entered, dirty):
            break
        yield
    else:
        latest.latest_offset = end - 1
    batch_filter = BatchFilter(
        latest,
        transactions := CleanedTransactions(aborted),
        {key: LastOfProducer(*last) for key, last in log.last_of_producers().items()},
        now_ms=now_ms,
        delete_retention_ms=log.config.delete_retention_ms,
        first_uncleanable_offset=end,
    )
    stats = CompactionStats(runs=1, segments_read=len(segments))
    cleaned: list[MemorySegment] = []
    for segment in segments:
        if not cleaned or cleaned[-1].size_bytes + segment.size_bytes > log.config.segment_bytes:
            cleaned.append(segment.empty_copy())
        for header, content in _batches([segment]):
            kept = batch_filter.apply(header, content)
            if kept is not None:
                view = memoryview(kept)
                cleaned[-1].append(view, len(view), header.last_offset, read_header(view).max_timestamp)
            yield
        for entry in transactions.take_still_aborted():
            cleaned[-1].add_aborted(entry)
        stats.bytes_read += segment.size_bytes
    counts = batch_filter.counts
    stats.segments_written = len(cleaned)
    stats.bytes_written = sum(segment.size_bytes for segment in cleaned)
    stats.records_read = counts.records_read
    stats.records_removed = counts.records_read - counts.records_kept
    stats.seconds = time.monotonic() - started
    if log.segments[: len(segments)] != segments:
        return False  # it was emptied meanwhile
    log.replace_segments(segments, cleaned)
    log.first_dirty_offset = latest.latest_offset + 1
    log.last_compaction = stats
    return True


def _batches(segments: list[MemorySegment]) -> Iterator[tuple[BatchHeader, memoryview]]:
    for segment in segments:
        for batch in segment.batches:
            yield read_header(batch), memoryview(batch)
