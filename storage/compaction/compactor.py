"""Choosing the log to compact, having it done, and putting the new segments in place: one log at a time.

A run goes through these steps, none of which waits:

    flushing     what is to be compacted gets on disk, with all that is derived from it
    publishing   … and the recovery point says so, and a checkpoint that below it there may be gaps
    cleaning     a worker writes `.cleaned` segments; each is swapped in when it is there

Swapping is renaming. A run that fails leaves a log that is right; it is tried again after
log.cleaner.backoff.ms, unless the log itself is damaged.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import Enum, auto

from kbroker.pending import Pending
from kbroker.storage import names
from kbroker.storage.compaction.cleanable import Cleanable, find_cleanable, first_dirty_offset
from kbroker.storage.compaction.jobs import (
    CleaningJob,
    CompactionStats,
    Failed,
    Finished,
    SegmentCleaned,
    SegmentToClean,
)
from kbroker.storage.compaction.runner import Runner
from kbroker.storage.config import MAX_LONG, DirectoryConfig, LogConfig
from kbroker.storage.durability.checkpointer import Checkpointer
from kbroker.storage.durability.flusher import Flusher
from kbroker.storage.errors import StorageError
from kbroker.storage.partition.log import PartitionLog
from kbroker.storage.partition.log_context import LogContext
from kbroker.storage.segments.file_segment import FileSegment

logger = logging.getLogger("kbroker.storage")

_POLL_MS = 20
_FLUSH_MS = 30_000  # a flush that takes longer does not come
_CLOSED_PER_SCAN = 500

Key = tuple[str, int]


class Step(Enum):
    FLUSHING = auto()
    PUBLISHING = auto()
    CLEANING = auto()


@dataclass(slots=True)
class Run:
    key: Key
    log: PartitionLog
    part: Cleanable
    deadline_ms: int
    step: Step = Step.FLUSHING
    asked: bool = False  # for a flush
    published: Pending[None] | None = None


class Compactor:
    def __init__(
        self,
        context: LogContext,
        flusher: Flusher,
        checkpointer: Checkpointer,
        runner: Runner,
        settings: DirectoryConfig,
        logs: Mapping[Key, PartitionLog],
        closed: Iterable[Key],
        config_of: Callable[[str], LogConfig | None],
        open_closed: Callable[[Key, LogConfig], PartitionLog],
        path_of: Callable[[Key], str],
        *,
        now_ms: int,
    ) -> None:
        self.totals = CompactionStats()
        self._context = context
        self._files = context.files
        self._flusher = flusher
        self._checkpointer = checkpointer
        self._runner = runner
        self._settings = settings
        self._logs = logs
        self._closed = closed
        self._config_of = config_of
        self._open_closed = open_closed
        self._path_of = path_of
        self._now_ms = now_ms
        self._next_scan_ms = now_ms + settings.cleaner_backoff_ms
        self._run: Run | None = None
        self._uncleanable: set[Key] = set()  # damaged
        self._not_before: dict[Key, int] = {}  # that failed: when to try again
        self._looked_at: set[Key] = set()  # closed partitions that are not dirty
        self._look_again_ms = 0

    def reconfigure(self, settings: DirectoryConfig) -> None:
        self._settings = settings
        self._next_scan_ms = min(self._next_scan_ms, self._now_ms + settings.cleaner_backoff_ms)

    def next_deadline(self, default: int) -> int:
        if not self._settings.cleaner_enable:
            return default
        return min(default, self._next_scan_ms if self._run is None else self._now_ms + _POLL_MS)

    def tick(self, now_ms: int) -> None:
        self._now_ms = now_ms
        if not self._settings.cleaner_enable:
            return
        if self._run is None and now_ms >= self._next_scan_ms:
            self._begin()
        while self._run is not None and self._advance(self._run):
            pass

    def forget(self, key: Key) -> None:
        """The partition is being deleted."""
        self._uncleanable.discard(key)
        self._looked_at.discard(key)
        self._not_before.pop(key, None)
        if self._run is not None and self._run.key == key:
            self._runner.stop()
            self._end()

    def close(self) -> None:
        self._runner.stop()
        if self._run is not None:
            self._remove_cleaned(self._run.log)
            self._run = None

    # choosing

    def _begin(self) -> None:
        due = [
            (part, key)
            for key, log in self._logs.items()
            if log.config.compact and (part := self._look_at(key, log)) is not None
        ]
        if not due:
            due = self._look_at_closed()
        if not due:
            self._runner.stop()
            self._next_scan_ms = self._now_ms + self._settings.cleaner_backoff_ms
            return
        part, key = max(due)
        log = self._logs[key]
        self._run = Run(key, log, part, self._now_ms + _FLUSH_MS)

    def _look_at(self, key: Key, log: PartitionLog) -> Cleanable | None:
        if key in self._uncleanable or not log.usable or self._now_ms < self._not_before.get(key, 0):
            return None
        if any(segment.corrupt for segment in log.segments):
            self._give_up_on(key, "it is damaged")
            return None
        dirty = first_dirty_offset(log.first_dirty_offset, log.log_start_offset, log.log_end_offset)
        try:
            return find_cleanable(log.segments, log.config, dirty, log.last_stable_offset, self._now_ms)
        except (OSError, EOFError, StorageError) as error:
            logger.warning("%s: cannot tell whether to compact it: %s", log, error)
            return None

    def _look_at_closed(self) -> list[tuple[Cleanable, Key]]:
        """Open a partition that nobody asked for if it seems to be dirty; while closed it does not change."""
        if self._now_ms >= self._look_again_ms:  # but its config may
            self._look_again_ms = self._now_ms + self._settings.retention_check_interval_ms
            self._looked_at.clear()
        unseen = [key for key in self._closed if key not in self._looked_at]
        for key in unseen[:_CLOSED_PER_SCAN]:
            self._looked_at.add(key)
            config = self._config_of(key[0])
            if config is None or not config.compact or key in self._uncleanable:
                continue
            try:
                if not self._seems_dirty(key, config):
                    continue
                log = self._open_closed(key, config)
            except (OSError, StorageError) as error:
                logger.warning("%s-%d cannot be opened for compaction: %s", *key, error)
                continue
            part = self._look_at(key, log)
            if part is not None:
                return [(part, key)]
        return []

    def _seems_dirty(self, key: Key, config: LogConfig) -> bool:
        """By the names and sizes of its files."""
        sizes = self._files.sizes(self._path_of(key))
        segments = sorted(
            (offset, size)
            for name, size in sizes.items()
            if (offset := names.offset_of(name, names.LOG)) is not None
        )
        first_dirty = self._checkpointer.cleaner_offsets.get(key, 0)
        dirty = sum(size for offset, size in segments[:-1] if offset >= first_dirty)
        total = sum(size for _, size in segments[:-1])
        if not dirty:
            return False
        return config.max_compaction_lag_ms < MAX_LONG or dirty / total > config.min_cleanable_dirty_ratio

    # the steps

    def _advance(self, run: Run) -> bool:
        """Take the next step; returns whether there may be one more at once."""
        if not run.log.usable:
            self._fail(run, "the log changed", level=logging.INFO)
            return False
        if run.step is Step.FLUSHING:
            return self._flush(run)
        if run.step is Step.PUBLISHING:
            return self._start(run)
        return self._hear(run)

    def _flush(self, run: Run) -> bool:
        log = run.log
        if log.published_point < run.part.first_uncleanable_offset:
            if not run.asked:
                run.asked = log.checkpoint_requested = True
                self._flusher.request(log)
            if log.published_point < run.part.first_uncleanable_offset:
                if self._now_ms >= run.deadline_ms:
                    self._fail(run, "it could not be flushed")
                return False
        log.compacted_offset = max(log.compacted_offset, run.part.first_uncleanable_offset)
        run.published = self._checkpointer.write_soon()
        run.step = Step.PUBLISHING
        return True

    def _start(self, run: Run) -> bool:
        assert run.published is not None
        if not run.published.done:
            return False
        try:
            run.published.result()
            self._remove_cleaned(run.log)
            self._runner.start(self._job(run))
        except (OSError, StorageError) as error:
            self._fail(run, str(error))
            return False
        run.step = Step.CLEANING
        return True

    def _job(self, run: Run) -> CleaningJob:
        log, part, settings = run.log, run.part, self._settings
        end = part.first_uncleanable_offset
        return CleaningJob(
            directory=log.directory,
            segments=[
                SegmentToClean(
                    segment.base_offset,
                    segment.size_bytes,
                    segment.index.size_bytes,
                    segment.time_index.size_bytes,
                )
                for segment in log.segments
                if segment.base_offset < end
            ],
            first_dirty_offset=part.first_dirty_offset,
            first_uncleanable_offset=end,
            aborted=[list(entry) for entry in log.aborted_before(end)],
            producers=[
                [producer_id, last_offset, epoch]
                for producer_id, (last_offset, epoch) in log.last_of_producers().items()
                if last_offset < end
            ],
            now_ms=self._now_ms,
            delete_retention_ms=log.config.delete_retention_ms,
            segment_bytes=log.config.segment_bytes,
            segment_index_bytes=log.config.segment_index_bytes,
            index_interval_bytes=log.config.index_interval_bytes,
            dedupe_buffer_bytes=settings.cleaner_dedupe_buffer_bytes,
            dedupe_load_factor=settings.cleaner_dedupe_load_factor,
        )

    def _hear(self, run: Run) -> bool:
        event = self._runner.next_event()
        if event is None:
            return False
        if isinstance(event, SegmentCleaned):
            return self._swap(run, event)
        if isinstance(event, Failed):
            if event.corrupt:
                self._give_up_on(run.key, event.reason)
            self._fail(run, event.reason)
            return False
        self._finish(run, event)
        return False

    def _swap(self, run: Run, cleaned: SegmentCleaned) -> bool:
        log = run.log
        sources = set(cleaned.sources)
        old = [segment for segment in log.segments if segment.base_offset in sources]
        if len(old) != len(sources):
            self._fail(run, "retention was first", level=logging.INFO)
            return False
        new = FileSegment(
            self._files,
            self._context.descriptors,
            log.directory,
            cleaned.base_offset,
            created_ms=self._now_ms,
            index_interval_bytes=log.config.index_interval_bytes,
            failed=_broken,
            suffix=names.CLEANED,
        )
        new.use_disk(cleaned.size_bytes, cleaned.index_entries, cleaned.time_index_entries)
        if cleaned.has_aborted:
            new.expect_aborted_on_disk()
        try:
            log.replace_segments(old, new, self._now_ms)
        except StorageError as error:
            self._fail(run, str(error))
            return False
        return True

    # the end of a run

    def _finish(self, run: Run, finished: Finished) -> None:
        log, stats = run.log, finished.stats
        log.first_dirty_offset = finished.end_offset
        log.last_compaction = stats
        self.totals.add(stats)
        self._checkpointer.write_soon()
        logger.info(
            "%s-%d: compacted offsets %d to %d: %d segments into %d, %d bytes into %d, "
            "%d of %d records removed, in %.3f s",
            *run.key,
            run.part.first_dirty_offset,
            finished.end_offset - 1,
            stats.segments_read,
            stats.segments_written,
            stats.bytes_read,
            stats.bytes_written,
            stats.records_removed,
            stats.records_read,
            stats.seconds,
        )
        self._end()

    def _fail(self, run: Run, reason: str, level: int = logging.WARNING) -> None:
        logger.log(level, "%s-%d: not compacted: %s", *run.key, reason)
        self._runner.stop()
        self._remove_cleaned(run.log)
        self._not_before[run.key] = self._now_ms + self._settings.cleaner_backoff_ms
        self._end()

    def _end(self) -> None:
        """Others may be due at once."""
        self._run = None
        self._next_scan_ms = self._now_ms

    def _give_up_on(self, key: Key, reason: str) -> None:
        logger.error("%s-%d is not compacted any more: %s", *key, reason)
        self._uncleanable.add(key)

    def _remove_cleaned(self, log: PartitionLog) -> None:
        """What an earlier worker left."""
        try:
            for name in self._files.names(log.directory):
                if name.endswith(names.CLEANED):
                    self._files.unlink_if_exists(os.path.join(log.directory, name))
        except FileNotFoundError:
            pass  # the partition is gone, and with it all that was in it
        except OSError as error:
            logger.warning("%s: cannot remove unfinished files: %s", log, error)


def _broken(error: OSError) -> StorageError:
    return StorageError(str(error))
