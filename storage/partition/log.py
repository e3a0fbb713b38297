"""The file-backed log of one partition.

Order of things, on which recovery relies: the `.log` is written first; what follows from it (indexes,
producer snapshot, epochs) is written later, at a roll, a checkpoint or the close; a recovery point is
published only when all of it is on disk. What fails for a shortage that passes (a full disk, no descriptors)
is undone or tried again; all else fences the log.

With fsync (`flush.messages=1`, or for the whole directory) the high watermark moves when the data is on disk;
without, when it is written.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from typing import Any

from kbroker.pending import Pending
from kbroker.protocol.records import CorruptRecord
from kbroker.storage import names
from kbroker.storage.config import MAX_LONG, LogConfig
from kbroker.storage.durability.flusher import SyncJob
from kbroker.storage.durability.unsynced import Taken, Unsynced
from kbroker.storage.errors import (
    NO_DESCRIPTORS,
    DiskFull,
    LogDeleted,
    LogFenced,
    Shortage,
    StorageError,
    shortage,
)
from kbroker.storage.files import TEMPORARY_SUFFIX
from kbroker.storage.interface import Assigned, Slice, TimestampOffset
from kbroker.storage.partition import leader_epochs
from kbroker.storage.partition.abstract_log import AbstractLog
from kbroker.storage.partition.cold_reads import ColdReads
from kbroker.storage.partition.log_context import LogContext
from kbroker.storage.partition.log_reader import LogReader, Place, Wanted
from kbroker.storage.partition.snapshots import Snapshots
from kbroker.storage.partition_metadata import write_partition_metadata
from kbroker.storage.recovery.opening import Loaded
from kbroker.storage.segments.file_segment import FileSegment

logger = logging.getLogger("kbroker.storage")


class PartitionLog(AbstractLog[FileSegment]):
    def __init__(
        self,
        context: LogContext,
        directory: str,
        topic: str,
        partition: int,
        topic_id: bytes,
        config: LogConfig,
        leader_epoch: int,
        loaded: Loaded | None = None,
    ) -> None:
        self._context = context
        self._files = context.files
        self.directory = directory
        self._reader = LogReader(context.files, context.worker)
        self._cold_reads = ColdReads(
            context.files, context.worker, self._io_failed, context.counts.cold_reads
        )
        self._sync_commits = False  # the high watermark waits for the disk
        self._committed_place: Place | None = None  # of the high watermark, where it is below the log end
        self._waiters: list[tuple[int, Pending[Any]]] = []  # last offset, told when it is on disk
        self._unsynced = Unsynced()
        self._flush_scheduled = False
        self._told_short = False
        self._unpersisted: list[FileSegment] = []  # ended, but the disk had no room for their indexes
        self.recovery_point = 0  # everything below is on disk
        self.published_point = 0  # … and so is what is derived from it: may be checkpointed
        self.checkpoint_requested = False  # the next sync writes what is derived, to publish a recovery point
        self._derived_point = 0  # everything derived from the data below is written
        super().__init__(topic, partition, topic_id, config, leader_epoch)
        self._snapshots = Snapshots(context.files, directory)
        if loaded is not None:
            self._segments = loaded.segments
            self._producers = loaded.producers
            self._epochs = loaded.epochs
            self._snapshots = loaded.snapshots
            self._unpersisted = loaded.unpersisted
            self.log_start_offset = loaded.log_start_offset
            self.log_end_offset = loaded.log_end_offset
            for segment in self._segments:
                segment.on_failure(self._io_failed)
            self.counts.first_offset = self.log_end_offset
            self.counts.first_bytes = self.size_bytes
        self._commit_up_to(self.log_end_offset)

    def _config_changed(self) -> None:
        sync_commits = self._context.fsync or self._config.flush_messages <= 1
        if sync_commits and not self._sync_commits and self._segments:
            self._committed_place = Place(self._segments[-1], self._segments[-1].size_bytes)
        self._sync_commits = sync_commits
        self._commits_at_once = not sync_commits and self._config.flush_messages == MAX_LONG
        if not sync_commits and self.high_watermark < self.log_end_offset:
            self._commit_up_to(self.log_end_offset)

    @property
    def shows_at_once(self) -> bool:
        return not self._sync_commits

    @property
    def on_disk(self) -> bool:
        """Whether anything was ever written: before that there is no directory."""
        return bool(self._segments)

    def oldest_timestamp(self, default: int) -> int:
        """The largest timestamp of the oldest segment: what retention.ms waits for."""
        return self._segments[0].largest_timestamp() if self._segments else default

    @property
    def fenced(self) -> bool:
        return isinstance(self._refusal, LogFenced)

    # appending

    def _active_segment(self, now_ms: int) -> FileSegment:
        if not self._segments:
            self._create(now_ms)
        return self._segments[-1]

    def _create(self, now_ms: int) -> None:
        """The first append makes the directory."""
        files, directory = self._files, self.directory
        try:
            if not files.exists(directory):
                files.make_directory(directory)
            metadata = write_partition_metadata(files, directory, self.topic_id)
            segment = self._new_segment(now_ms)
        except OSError as error:
            raise self._io_failed(error) from error
        self._unsynced.add_paths(metadata)
        self._unsynced.add_directories(directory, os.path.dirname(directory))
        self._segments.append(segment)

    def _new_segment(self, now_ms: int) -> FileSegment:
        segment = FileSegment(
            self._files,
            self._context.descriptors,
            self.directory,
            self.log_end_offset,
            created_ms=now_ms,
            index_interval_bytes=self._config.index_interval_bytes,
            failed=self._io_failed,
            roll_jitter_ms=self._roll_jitter_ms(),
        )
        segment.create()
        return segment

    def _roll(self, now_ms: int) -> FileSegment:
        segment = self._new_segment(now_ms)
        ended = self._segments[-1]
        self._write_derived(ended)
        self._unsynced.add_segment(ended)
        self._unsynced.add_directories(self.directory)
        self._segments.append(segment)
        self._schedule_flush(now_ms)
        return segment

    def _write_derived(self, ended: FileSegment) -> None:
        """Write indexes and a snapshot; a shortage only delays them, as they can be made again."""
        try:
            self._unsynced.add_paths(*ended.complete())
            self._unsynced.add_paths(self._snapshots.write(self.log_end_offset, self._producers))
        except OSError as error:
            if shortage(error, "") is None:
                raise self._io_failed(error) from error
            logger.warning("%s: no room for indexes: %s", self, error)
            self._unpersisted.append(ended)

    def _appended(self, now_ms: int) -> Pending[Assigned | None] | None:
        if self._told_short:
            self._told_short = False
            logger.warning("%s takes records again", self)
        if self._sync_commits:
            return self._durable_up_to(self.log_end_offset - 1)
        self._commit_up_to(self.log_end_offset)
        if not self._flush_scheduled:
            self._schedule_flush(now_ms)
        if self.log_end_offset - self.recovery_point >= self._config.flush_messages:
            return self._sync_up_to(self.log_end_offset - 1)
        return None

    def _durable_up_to(self, last_offset: int) -> Pending[Assigned | None] | None:
        if not self._sync_commits or last_offset < self.recovery_point:
            return None
        return self._sync_up_to(last_offset)

    def _sync_up_to(self, last_offset: int) -> Pending[Any]:
        pending: Pending[Any] = Pending()
        self._waiters.append((last_offset, pending))
        self._context.flusher.request(self)
        return pending

    def _schedule_flush(self, now_ms: int) -> None:
        self._flush_scheduled = True
        self._context.flusher.dirty(self, now_ms + self._config.flush_ms)

    # syncing

    def flush(self) -> Pending[None]:
        if self._refusal is not None and self._ended:
            failed: Pending[None] = Pending()
            failed.fail(self._refusal)
            return failed
        if self.recovery_point >= self.log_end_offset and not self._unsynced:
            return Pending.resolved(None)
        return self._sync_up_to(self.log_end_offset - 1)

    def begin_sync(self) -> SyncJob | None:
        """What to sync now; None if there is no way to."""
        if self._ended:
            return None
        if self.checkpoint_requested:
            self.checkpoint_requested = False
            try:
                self.persist()
            except Shortage as error:
                logger.debug("%s: no room for a checkpoint: %s", self, error)
            except StorageError:
                return None
        taken = self._unsynced.take()
        self._flush_scheduled = False
        try:
            handles = [segment.handle for segment in (*taken.segments, *self._segments[-1:])]
        except OSError as error:
            self.sync_failed(error, taken)
            return None
        return SyncJob(
            self.log_end_offset,
            Place(self._segments[-1], self._segments[-1].size_bytes) if self._segments else None,
            handles,
            taken,
            self._derived_point,
        )

    def synced(self, job: SyncJob) -> None:
        end_offset = job.end_offset
        self.recovery_point = max(self.recovery_point, end_offset)
        self.published_point = max(self.published_point, job.derived_point)
        if self._sync_commits and end_offset > self.high_watermark and not self._ended:
            place = job.place
            self._committed_place = place if place is not None and not place.segment.given_up else None
            self._commit_up_to(end_offset)
        if self._waiters:
            told = [waiter for waiter in self._waiters if waiter[0] < end_offset]
            self._waiters = [waiter for waiter in self._waiters if waiter[0] >= end_offset]
            for _, pending in told:
                pending.resolve(None)

    def all_synced(self) -> None:
        """Everything was written and the whole file system was synced."""
        job = self.begin_sync()
        if job is not None:
            self.synced(job)

    def sync_failed(self, error: OSError, taken: Taken | None = None) -> None:
        """What the disk holds is unknown now: nothing more is acknowledged.

        A file that could not be opened to be synced is as it was: who waits for it waits on.
        """
        if error.errno not in NO_DESCRIPTORS or taken is None:
            self._fence(error)
        elif not self._ended:
            self._unsynced.put_back(taken)
            self._context.flusher.retry(self)

    def _fence(self, error: Exception) -> LogFenced:
        fenced = LogFenced(f"{self.topic}-{self.partition}: {error}")
        if not self._ended:
            logger.error("%s is fenced until it is reopened: %s", self, error)
        waiters, self._waiters = self._waiters, []
        self._context.flusher.forget(self)
        self._refuse(fenced)
        for _, pending in waiters:
            pending.fail(fenced)
        return fenced

    def _io_failed(self, error: OSError) -> StorageError:
        short = shortage(error, f"{self.topic}-{self.partition}")
        if short is None:
            return self._fence(error)
        if not self._told_short:
            self._told_short = True
            what = "takes no records" if isinstance(short, DiskFull) else "cannot serve all requests"
            logger.warning("%s %s until there is room: %s", self, what, error)
        return short

    # checkpoints

    @property
    def changed_since_checkpoint(self) -> bool:
        return not self._ended and self.published_point < self.log_end_offset

    def persist(self) -> None:
        """Write indexes, a snapshot and the epochs, as far as the log has got."""
        if self._segments:
            self._persist(self._segments[-1].persist)

    def complete(self) -> None:
        """The same of a log that is being closed: opening it again needs nothing else."""
        if self._segments:
            self._persist(self._segments[-1].complete)

    def _persist(self, active: Callable[[], list[str]]) -> None:
        """`active` writes what follows from the active segment."""
        if self._ended:
            return
        try:
            while self._unpersisted:
                self._unsynced.add_paths(*self._unpersisted[0].complete())
                del self._unpersisted[0]
            self._unsynced.add_paths(*active())
            if self.log_end_offset not in self._snapshots:
                self._unsynced.add_paths(self._snapshots.write(self.log_end_offset, self._producers))
                bases = {segment.base_offset for segment in self._segments}
                self._snapshots.remove_strays(bases, keep=2)
            self._write_epochs()
        except OSError as error:
            raise self._io_failed(error) from error
        self._derived_point = self.log_end_offset

    def _write_epochs(self) -> None:
        if not self._epochs.changed:
            return
        # Without a sync in between, a power loss may leave this file old or torn: recovery sees that from the
        # epochs in the batches, and reads them all.
        path = os.path.join(self.directory, names.LEADER_EPOCHS)
        self._files.write_bytes(path + TEMPORARY_SUFFIX, leader_epochs.encode(self._epochs), sync=False)
        self._files.rename(path + TEMPORARY_SUFFIX, path)
        self._unsynced.add_paths(path)
        self._unsynced.add_directories(self.directory)
        self._epochs.changed = False

    # reading

    def read(
        self,
        offset: int,
        max_bytes: int,
        *,
        committed: bool = False,
        min_one: bool = True,
        sendable: bool = False,
        unread: bool = False,
    ) -> Slice | Pending[Slice]:
        wanted = Wanted(offset, max_bytes, min_one, sendable, unread)
        return self._cold_reads.now_or_later(
            lambda wait, loaded: self._read(wanted, committed, wait=wait, loaded=loaded)
        )

    def _read(self, wanted: Wanted, committed: bool, *, wait: bool, loaded: bool) -> Slice:
        if self._refusal is not None:
            self._check_readable()
        offset = wanted.offset
        self._check_range(offset)
        found = None
        limit = self.last_stable_offset if committed else self.high_watermark
        if offset < limit:
            place = self._place_of_limit(limit, wait)
            index = self._segment_index(offset)
            found = self._reader.read(self._segments, index, wanted, place, wait=wait, loaded=loaded)
        if found is not None and found.next_offset > limit:
            raise CorruptRecord(
                f"{self}: a batch at offset {offset} says that it ends at {found.next_offset}"
            )
        limits = (self.high_watermark, self.last_stable_offset, self.log_start_offset)
        if found is None or not found.data:
            return Slice((), 0, *limits, (), offset)
        aborted = self._aborted_between(offset, found.next_offset) if committed else ()
        return Slice((found.data,), len(found.data), *limits, aborted, found.next_offset)

    def _place_of_limit(self, limit: int, wait: bool) -> Place:
        if limit == self.log_end_offset:
            segment = self._segments[-1]
            return Place(segment, segment.size_bytes)
        if limit == self.high_watermark and self._committed_place is not None:
            return self._committed_place
        return self._reader.place_of_limit(self._segments, self._segment_index(limit), limit, wait=wait)

    def offset_for_timestamp(
        self, timestamp: int
    ) -> TimestampOffset | Pending[TimestampOffset | None] | None:
        if self._refusal is not None:
            self._check_readable()
        return self._cold_reads.now_or_later(
            lambda wait, _loaded: self._reader.offset_for_timestamp(
                self._segments, timestamp, self.log_start_offset, self.high_watermark, wait=wait
            )
        )

    def timestamp_of(self, offset: int) -> int | Pending[int]:
        if self._refusal is not None:
            self._check_readable()
        self._check_range(offset)
        return self._cold_reads.now_or_later(
            lambda wait, _loaded: self._reader.timestamp_of(
                self._segments, self._segment_index(offset), offset, wait=wait
            )
        )

    def max_timestamp_offset(self) -> TimestampOffset | Pending[TimestampOffset | None] | None:
        if self._refusal is not None:
            self._check_readable()
        for segment in self._segments:
            segment.load_timestamps()
        newest = max((segment.max_timestamp for segment in self._segments), default=-1)
        return self.offset_for_timestamp(newest) if newest >= 0 else None

    # segments that go

    def _raise_log_start(self, offset: int) -> None:
        super()._raise_log_start(offset)
        self._context.log_start_moved()

    def _discard(self, segments: list[FileSegment], keep_snapshot: int = -1) -> None:
        """Rename the files of segments that were given up; they are removed later."""
        self._reader.forget()
        if self._committed_place is not None and self._committed_place.segment in segments:
            self._committed_place = None
        renamed: list[str] = []
        self._unpersisted = [segment for segment in self._unpersisted if segment not in segments]
        self._unsynced.forget(segments)
        try:
            for segment in segments:
                renamed += segment.rename_suffix("", names.DELETED)
                if segment.base_offset == keep_snapshot:
                    continue
                self._unsynced.forget(paths=[self._snapshots.path(segment.base_offset)])
                marked = self._snapshots.mark_deleted(segment.base_offset)
                if marked is not None:
                    renamed.append(marked)
        except OSError as error:
            raise self._io_failed(error) from error
        finally:
            self._context.delete_later(renamed, self._config.file_delete_delay_ms)

    def replace_segments(self, old: list[FileSegment], new: FileSegment, now_ms: int) -> None:
        """Put a compacted segment, complete in `.cleaned` files, in the place of those it was made from.

        A crash leads to the old ones until all files of the new one end in `.swap`, then to the new one.
        """
        if self._refusal is not None:
            raise self._refusal
        start = self._segments.index(old[0])
        new.on_failure(self._io_failed)
        try:
            new.rename_suffix(names.CLEANED, names.SWAP)
        except OSError as error:
            try:
                new.remove_files(names.SWAP, names.CLEANED)
            except OSError as worse:
                raise self._fence(worse) from error
            raise StorageError(f"{self.topic}-{self.partition}: {error}") from error
        self._segments[start : start + len(old)] = [new]
        self.counts.gone_bytes += sum(segment.size_bytes for segment in old) - new.size_bytes
        try:
            self._discard(old, keep_snapshot=new.base_offset)
            new.rename_suffix(names.SWAP, "")
        except (OSError, StorageError) as error:
            # Halfway between the two: only opening the log again tells what it has.
            raise self._fence(error) from error
        self._unsynced.add_directories(self.directory)
        if not self._flush_scheduled:
            self._schedule_flush(now_ms)

    # the end

    def close(self) -> None:
        """Everything on disk, everything derived written: opening it again needs no scan."""
        if not self._ended:
            self.complete()
            job = self.begin_sync()
            if job is not None:
                try:
                    job.run(self._files)
                except OSError as error:
                    raise self._io_failed(error) from error
                self.synced(job)
        self.release(StorageError(f"{self.topic}-{self.partition} is closed"))

    def mark_deleted(self) -> None:
        self.release(LogDeleted(f"{self.topic}-{self.partition} was deleted"))

    def release(self, reason: StorageError) -> None:
        """No more use of this object: its descriptors are given back, its waiters told."""
        self._context.flusher.forget(self)
        self._refuse(reason)
        waiters, self._waiters = self._waiters, []
        for _, pending in waiters:
            pending.fail(reason)
        for segment in self._segments:
            segment.close()
