"""Compacting the segments of a partition directory into `.cleaned` files; nothing else there is changed.

First the latest offset of every key in the dirty part is found; then all segments up to there, the clean ones
too, are filtered into new ones. Segments that fit into one together become one.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator

from kbroker.protocol.records import BatchHeader, iter_spans, payload_of, read_header
from kbroker.storage import names
from kbroker.storage.compaction.batch_filter import BatchFilter, LastOfProducer
from kbroker.storage.compaction.jobs import (
    CleaningJob,
    CompactionStats,
    Finished,
    SegmentCleaned,
    SegmentToClean,
)
from kbroker.storage.compaction.offset_map import OffsetMap
from kbroker.storage.compaction.transactions import CleanedTransactions
from kbroker.storage.errors import StorageError
from kbroker.storage.files import Files
from kbroker.storage.partition.transaction_index import AbortedEntry
from kbroker.storage.recovery.batch_scan import scan
from kbroker.storage.segments.descriptors import Descriptors
from kbroker.storage.segments.file_segment import FileSegment
from kbroker.storage.segments.segment import MAX_RELATIVE_OFFSET

# So that putting one cleaned segment in place stays a matter of a few hundred renames.
_MOST_SOURCES = 64

Batches = Iterable[tuple[BatchHeader, memoryview]]


def fill_map(latest: OffsetMap, batches: Batches, transactions: CleanedTransactions, start: int) -> bool:
    """Enter the keys of records from `start` on; returns False where the map became full before the end."""
    put, capacity = latest.put, latest.capacity
    for header, batch in batches:
        if header.last_offset < start and not header.is_transactional:
            continue
        if header.is_control:
            transactions.is_needless(header, batch)
        elif not transactions.is_aborted(header) and header.record_count:
            base_offset = header.base_offset
            for _, _, offset_delta, _, key, _ in iter_spans(payload_of(batch, header), header):
                offset = base_offset + offset_delta
                if key is not None and offset >= start:
                    if latest.size >= capacity:
                        return False
                    put(key, offset)
                    latest.latest_offset = offset
        if header.last_offset >= start:
            latest.latest_offset = header.last_offset
    return True


def group_segments(job: CleaningJob, segments: list[SegmentToClean]) -> list[list[SegmentToClean]]:
    """Which segments become one: by the size of data and indexes, and by the range of offsets."""
    ends = [segment.base_offset for segment in segments[1:]] + [job.first_uncleanable_offset]
    groups: list[list[SegmentToClean]] = []
    size = index = time_index = 0
    for segment, end in zip(segments, ends, strict=True):
        size += segment.size_bytes
        index += segment.index_bytes
        time_index += segment.time_index_bytes
        if (
            not groups
            or len(groups[-1]) >= _MOST_SOURCES
            or size > job.segment_bytes
            or max(index, time_index) > job.segment_index_bytes
            or (segment.size_bytes and end - 1 - groups[-1][0].base_offset > MAX_RELATIVE_OFFSET)
        ):
            groups.append([])
            size, index, time_index = segment.size_bytes, segment.index_bytes, segment.time_index_bytes
        groups[-1].append(segment)
    return groups


class Cleaner:
    def __init__(self, files: Files, job: CleaningJob) -> None:
        self._files = files
        self._descriptors = Descriptors(files)
        self._job = job
        self._stats = CompactionStats(runs=1)

    def clean(self) -> Iterator[SegmentCleaned | Finished]:
        """Make the cleaned segments one by one. Raises OSError and RecordError."""
        job, stats = self._job, self._stats
        started = time.monotonic()
        latest = self._build_map()
        end_offset = latest.latest_offset + 1
        batch_filter = BatchFilter(
            latest,
            transactions := CleanedTransactions(self._aborted_from(0)),
            {producer_id: LastOfProducer(last, epoch) for producer_id, last, epoch in job.producers},
            now_ms=job.now_ms,
            delete_retention_ms=job.delete_retention_ms,
            first_uncleanable_offset=job.first_uncleanable_offset,
        )
        segments = [segment for segment in job.segments if segment.base_offset < end_offset]
        for group in group_segments(job, segments):
            cleaned = self._clean_group(group, batch_filter, transactions)
            stats.segments_read += len(group)
            stats.segments_written += 1
            stats.bytes_written += cleaned.size_bytes
            yield cleaned
        counts = batch_filter.counts
        stats.records_read = counts.records_read
        stats.records_removed = counts.records_read - counts.records_kept
        stats.seconds = time.monotonic() - started
        yield Finished(end_offset, stats)

    def _aborted_from(self, offset: int) -> list[AbortedEntry]:
        """The aborted transactions whose markers are met by who reads from `offset` on."""
        entries = (AbortedEntry(*entry) for entry in self._job.aborted)
        return [entry for entry in entries if entry.last_offset >= offset]

    def _batches(self, segment: SegmentToClean) -> Batches:
        path = names.segment_file(self._job.directory, segment.base_offset, names.LOG)
        file = self._files.open(path)
        try:
            for _, header, batch in scan(self._files, file, 0, segment.size_bytes):
                yield header, batch
        finally:
            file.close()

    def _build_map(self) -> OffsetMap:
        job = self._job
        start = job.first_dirty_offset
        latest = OffsetMap(
            job.dedupe_buffer_bytes, job.dedupe_load_factor, records=job.first_uncleanable_offset - start
        )
        latest.latest_offset = start - 1
        ends = [segment.base_offset for segment in job.segments[1:]] + [job.first_uncleanable_offset]
        dirty = [(segment, end) for segment, end in zip(job.segments, ends, strict=True) if end > start]
        transactions = CleanedTransactions(self._aborted_from(dirty[0][0].base_offset if dirty else start))
        for segment, end in dirty:
            self._stats.map_bytes_read += segment.size_bytes
            if not fill_map(latest, self._batches(segment), transactions, start):
                break
            latest.latest_offset = end - 1  # whatever an earlier compaction left of the segment's end
        return latest

    def _clean_group(
        self, group: list[SegmentToClean], batch_filter: BatchFilter, transactions: CleanedTransactions
    ) -> SegmentCleaned:
        job, files = self._job, self._files
        cleaned = FileSegment(
            files,
            self._descriptors,
            job.directory,
            group[0].base_offset,
            created_ms=job.now_ms,
            index_interval_bytes=job.index_interval_bytes,
            failed=_unchanged,
            suffix=names.CLEANED,
        )
        for path in cleaned.paths():
            files.unlink_if_exists(path)
        cleaned.create()
        for segment in group:
            for header, batch in self._batches(segment):
                kept = batch_filter.apply(header, batch)
                if kept is not None:
                    view = memoryview(kept)
                    timestamp = header.max_timestamp if kept is batch else read_header(view).max_timestamp
                    cleaned.append(view, len(view), header.last_offset, timestamp)
            self._stats.bytes_read += segment.size_bytes
        for entry in transactions.take_still_aborted():
            cleaned.add_aborted(entry)
        changed = cleaned.complete()
        files.sync(cleaned.handle)
        for path in changed:
            file = files.open(path)
            files.sync(file)
            file.close()
        files.sync_directory(job.directory)
        result = SegmentCleaned(
            cleaned.base_offset,
            [segment.base_offset for segment in group],
            cleaned.size_bytes,
            len(cleaned.index),
            len(cleaned.time_index),
            bool(cleaned.aborted()),
        )
        cleaned.close()
        return result


class _Unwritable(StorageError, OSError):
    """A `.cleaned` file could not be written."""


def _unchanged(error: OSError) -> StorageError:
    return _Unwritable(*error.args)
