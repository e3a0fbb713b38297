"""One data directory: its lock, its partitions, their recovery, and what is due from time to time.

Partitions are opened when they are asked for. After a clean stop nothing is read but the checkpoints; after
an unclean one every partition is recovered first. Directories named `<topic>-<partition>` are partitions;
others are reported and left alone.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from kbroker.pending import Pending
from kbroker.protocol.records import RecordError
from kbroker.storage import names
from kbroker.storage.compaction.compactor import Compactor
from kbroker.storage.compaction.jobs import CompactionStats
from kbroker.storage.compaction.runner import ProcessRunner, Runner
from kbroker.storage.config import MAX_LONG, DirectoryConfig, LogConfig
from kbroker.storage.counts import DirectoryCounts
from kbroker.storage.directory_marks import check_meta_properties, leave_clean_mark, take_clean_mark
from kbroker.storage.durability.checkpointer import Checkpointer
from kbroker.storage.durability.flusher import Flusher
from kbroker.storage.errors import (
    DirectoryLocked,
    InconsistentTopicId,
    LogFenced,
    Shortage,
    StorageError,
    shortage,
)
from kbroker.storage.files import Files, OpenFile
from kbroker.storage.image import Image, remove_image
from kbroker.storage.interface import PartitionSize, WantedRead
from kbroker.storage.partition.log import PartitionLog
from kbroker.storage.partition.log_context import LogContext
from kbroker.storage.partition.producer_limit import CHECK_INTERVAL_MS, limit_producers
from kbroker.storage.partition_metadata import read_partition_metadata, write_partition_metadata
from kbroker.storage.recovery.damage import Loss
from kbroker.storage.recovery.opening import load
from kbroker.storage.recovery.partition_files import LoadOptions
from kbroker.storage.removal import Removal
from kbroker.storage.segments.descriptors import Descriptors
from kbroker.storage.segments.file_segment import Damage
from kbroker.storage.worker import Worker

logger = logging.getLogger("kbroker.storage")

_RETENTION_EFFORT = 200  # per tick: an open log costs 1, one that must be opened 20
_OPENING_EFFORT = 20
_SOON_MS = 20
_PROGRESS_EVERY = 1000
_PROBE_BYTES = 4096  # a block: an empty file takes no room

Key = tuple[str, int]


class LogDirectory:
    def __init__(
        self,
        path: str,
        files: Files,
        worker: Worker,
        lock: OpenFile,
        *,
        now_ms: int,
        fsync: bool,
        settings: DirectoryConfig,
        runner: Runner,
    ) -> None:
        self.path = path
        self.clean_start = True
        self.config_source: Callable[[str], LogConfig | None] | None = None
        self._files = files
        self._worker = worker
        self._lock = lock
        self._settings = settings
        self._now_ms = now_ms
        self._handle = files.open_directory(path)
        self.counts = DirectoryCounts()
        self._flusher = Flusher(files, worker, self._handle, self.counts.syncs)
        self._removal = Removal(files, worker)
        self._logs: dict[Key, PartitionLog] = {}
        self._checkpointer = Checkpointer(
            files,
            worker,
            self._flusher,
            path,
            self._logs.values,
            now_ms=now_ms,
            interval_ms=settings.flush_offset_checkpoint_interval_ms,
        )
        self._context = LogContext(
            files,
            Descriptors(files),
            worker,
            self._flusher,
            settings,
            fsync,
            self.counts,
            lambda paths, delay_ms: self._removal.add(paths, self._now_ms + delay_ms),
            self._checkpointer.log_start_moved,
        )
        self._partitions: dict[Key, None] = {}  # that have a directory, but are not open
        self._damage: dict[Key, dict[int, list[Damage]]] = {}  # that recovery found, by segment
        self.losses: dict[Key, dict[int, Loss]] = {}
        """What was found to be missing since the start, by partition and first offset."""
        self._all_written = False  # nothing that was written can be missing: the machine did not go down
        self._closed_sizes: dict[Key, int] = {}  # as far as somebody asked for them
        self._unreadable: dict[Key, StorageError] = {}
        # Recovered, but what follows from their data could not be written: kept for who opens them.
        self._recovered: dict[Key, PartitionLog] = {}
        self.held: StorageError | None = None
        self._image: Image | None = None  # that is being made
        self._deleted: list[Key] = []  # whose files are still there
        self._to_retain: list[Key] = []
        self._not_before: dict[Key, int] = {}  # when retention looks at a partition that is not open
        self._compactor = Compactor(
            self._context,
            self._flusher,
            self._checkpointer,
            runner,
            settings,
            self._logs,
            self._partitions,
            lambda topic: self.config_source(topic) if self.config_source is not None else None,
            self._open_closed,
            self._path_of,
            now_ms=now_ms,
        )
        self._next_retention_ms = now_ms + settings.retention_initial_delay_ms
        self._next_expiry_ms = now_ms + settings.producer_id_expiration_check_interval_ms
        self._next_producer_look_ms = now_ms

    @classmethod
    def open(
        cls,
        path: str,
        *,
        worker: Worker,
        now_ms: int,
        files: Files | None = None,
        fsync: bool = False,
        settings: DirectoryConfig | None = None,
        cluster_id: str | None = None,
        node_id: int = 1,
        runner: Runner | None = None,
        all_written: bool = False,
    ) -> LogDirectory:
        """Lock and open a directory, new or used; recover its partitions if it was not closed.

        `runner`: where logs are compacted; else in a process of its own. `all_written`: nothing that was
        written to it can be missing; else that is so if the machine has not gone down since.
        """
        files = files if files is not None else Files()
        path = os.path.abspath(path)
        files.make_directories(path)
        lock_path = os.path.join(path, names.LOCK)
        try:
            lock = files.lock(lock_path)
        except BlockingIOError:
            holder = files.lock_holder(lock_path)
            who = "another process" if holder is None else f"process {holder}"
            raise DirectoryLocked(f"{path} is in use by {who}: stop it, or use another directory") from None
        try:
            files.probe(path)
            if cluster_id is not None:
                check_meta_properties(files, path, cluster_id, node_id)
            directory = cls(
                path,
                files,
                worker,
                lock,
                now_ms=now_ms,
                fsync=fsync,
                settings=settings or DirectoryConfig(),
                runner=runner or ProcessRunner(),
            )
            directory._all_written = all_written
            directory._start()
        except BaseException:
            lock.close()
            raise
        return directory

    def _start(self) -> None:
        clean = take_clean_mark(self._files, self.path)
        boot_id = self._files.boot_id()
        self._all_written |= clean or (bool(boot_id) and self._files.lock_note(self._lock) == boot_id)
        self._find_partitions()
        try:
            self._checkpointer.read()
        except ValueError as error:
            logger.warning("%s: a checkpoint is unreadable: %s", self.path, error)
            clean = False
        if not clean:
            for key in self._deleted:  # the checkpoints may not have heard of it: nothing speaks of it now
                self._checkpointer.forget(*key)
        if not clean and (self._partitions or self.missing()):
            self.clean_start = False
            self._recover()
        self._all_written = True  # from here on it is this process that writes
        self._files.leave_lock_note(self._lock, boot_id)

    def _find_partitions(self) -> None:
        unknown = []
        for name in sorted(self._files.directories(self.path)):
            key = names.parse_partition_directory(name)
            if name == names.IMAGES:  # of whom nobody knows any more
                left = os.path.join(self.path, names.given_up_images())
                self._files.rename(os.path.join(self.path, name), left)
                self._remove_images(left)
            elif name.startswith(names.IMAGES) and name.endswith(names.DELETE_DIRECTORY):
                self._remove_images(os.path.join(self.path, name))
            elif name.endswith(names.DELETE_DIRECTORY):
                deleted = names.parse_deleted_directory(name)
                if deleted is not None:
                    self._deleted.append(deleted)
                self._removal.add([os.path.join(self.path, name)], self._now_ms)
            elif key is None:
                unknown.append(name)
            else:
                self._partitions[key] = None
        if unknown:
            some = ", ".join(unknown[:10])
            logger.warning("%s: %d unknown directories are left alone: %s", self.path, len(unknown), some)

    def _recover(self) -> None:
        total = len(self._partitions)
        logger.warning("%s was not closed: recovering %d partitions", self.path, total)
        cut_bytes = 0
        for done, key in enumerate(list(self._partitions), 1):
            try:
                cut_bytes += self._recover_partition(key)
            except Shortage as error:
                logger.warning("%s-%d is recovered when it is asked for: %s", *key, error)
                self._unreadable[key] = error
            except (OSError, StorageError) as error:
                logger.exception("%s-%d cannot be recovered", *key)
                self._unreadable[key] = LogFenced(f"{key[0]}-{key[1]} could not be recovered: {error}")
            if done % _PROGRESS_EVERY == 0:
                logger.warning("%s: %d of %d partitions recovered", self.path, done, total)
        self._files.sync_file_system(self._handle)
        self._write_checkpoints()
        logger.warning("%s: %d partitions recovered, %d bytes cut", self.path, total, cut_bytes)

    def _write_checkpoints(self) -> None:
        try:
            self._checkpointer.write()
        except OSError as error:
            if shortage(error, self.path) is None:
                raise
            logger.warning("%s: the checkpoints could not be written: %s", self.path, error)

    def _recover_partition(self, key: Key) -> int:
        path = self._path_of(key)
        try:
            if self._topic_id_in(path) is None:
                return 0  # a directory that was just being made, or none of ours
            log, cut_bytes = self._load(key, bytes(16), LogConfig(), 0, clean=False)
        except OSError as error:
            short = shortage(error, path)
            if short is None:
                raise
            raise short from error
        try:
            log.complete()
        except Shortage:
            self._recovered[key] = log
            return cut_bytes
        damage = {segment.base_offset: segment.corrupt for segment in log.segments if segment.corrupt}
        if damage:
            self._damage[key] = damage
        log.published_point = log.log_end_offset
        self._checkpointer.remember(log)
        log.release(StorageError("recovered"))
        return cut_bytes

    # partitions

    def _path_of(self, key: Key) -> str:
        return os.path.join(self.path, names.partition_directory(*key))

    def _topic_id_in(self, path: str) -> bytes | None:
        try:
            return read_partition_metadata(self._files, path)
        except (ValueError, KeyError) as error:
            raise InconsistentTopicId(f"{path}: {error}") from error

    def _load(
        self, key: Key, topic_id: bytes, config: LogConfig, leader_epoch: int, *, clean: bool
    ) -> tuple[PartitionLog, int]:
        path = self._path_of(key)
        if clean:
            self._recover_late(key)
        self._closed_sizes.pop(key, None)
        recovered = self._recovered.pop(key, None)
        if recovered is not None:
            recovered.topic_id, recovered.config = topic_id, config
            recovered.set_leader_epoch(leader_epoch)
            return recovered, 0
        checkpointer = self._checkpointer
        recovery_point = checkpointer.recovery_points.get(key)
        options = LoadOptions(
            clean=clean,
            all_written=self._all_written,
            recovery_point=recovery_point,
            high_watermark=checkpointer.high_watermarks.get(key) if self._all_written else None,
            log_start_offset=checkpointer.log_starts.get(key),
            compacted_offset=checkpointer.compacted_offset(*key),
            now_ms=self._now_ms,
            producer_id_expiration_ms=self._settings.producer_id_expiration_ms,
            index_interval_bytes=config.index_interval_bytes,
        )
        try:
            loaded = load(
                self._files, self._context.descriptors, path, options, lambda error: _failed(error, path)
            )
        except (RecordError, EOFError, ValueError) as error:
            raise LogFenced(f"{path} cannot be read: {error}") from error
        self._report(key, loaded.losses)
        log = PartitionLog(self._context, path, *key, topic_id, config, leader_epoch, loaded)
        if clean:
            recovery_point = log.log_end_offset  # whoever stopped cleanly had it all on disk
        log.recovery_point = log.published_point = min(recovery_point or 0, log.log_end_offset)
        if clean and loaded.unpersisted:
            log.published_point = 0  # its files did not agree: the next checkpoint writes them again
        for segment in log.segments if key in self._damage else ():
            segment.corrupt = sorted({*segment.corrupt, *self._damage[key].get(segment.base_offset, ())})
        log.first_dirty_offset = checkpointer.cleaner_offsets.get(key)
        log.compacted_offset = checkpointer.compacted_offsets.get(key, 0)
        return log, loaded.cut_bytes

    def _recover_late(self, key: Key) -> None:
        """Try again what recovery could not do for a shortage."""
        error = self._unreadable.get(key)
        if error is None:
            return
        if not isinstance(error, Shortage):
            raise error
        self._recovered[key], _ = self._load(key, bytes(16), LogConfig(), 0, clean=False)
        del self._unreadable[key]

    def _report(self, key: Key, losses: list[Loss]) -> None:
        """Say once what is lost."""
        known = self.losses.setdefault(key, {}) if losses else {}
        for loss in losses:
            if loss.first_offset not in known:
                known[loss.first_offset] = loss
                logger.error(
                    "%s-%d: offsets %d to %d are gone: %s",
                    *key,
                    loss.first_offset,
                    loss.next_offset - 1,
                    loss.reason,
                )

    def log(
        self, topic_id: bytes, topic: str, partition: int, config: LogConfig, leader_epoch: int
    ) -> PartitionLog:
        key = (topic, partition)
        log = self._logs.get(key)
        if log is None:
            log = self._logs[key] = self._open_log(key, topic_id, config, leader_epoch)
            log.hold_appends(self.held)
        elif log.topic_id != topic_id:
            raise InconsistentTopicId(f"{topic}-{partition} belongs to another topic id")
        else:
            if log.config != config:
                log.config = config
            log.set_leader_epoch(leader_epoch)
        return log

    def _open_log(self, key: Key, topic_id: bytes, config: LogConfig, leader_epoch: int) -> PartitionLog:
        path = self._path_of(key)
        if key not in self._partitions:
            self._checkpointer.forget_for_good(*key)
            return PartitionLog(self._context, path, *key, topic_id, config, leader_epoch)
        try:
            found = self._topic_id_in(path)
            if found and found != topic_id:
                raise InconsistentTopicId(f"{path} belongs to another topic id")
            if found is None and any(
                size and name.endswith(names.LOG) for name, size in self._files.sizes(path).items()
            ):
                raise InconsistentTopicId(f"{path} has data, but no partition.metadata")
            log, _ = self._load(key, topic_id, config, leader_epoch, clean=True)
            if not found:
                self._write_topic_id(log, found is None)
        except OSError as error:
            raise _failed(error, path) from error
        if self._image is not None:
            self._image.opened(log)
        del self._partitions[key]
        return log

    def _write_topic_id(self, log: PartitionLog, missing: bool) -> None:
        try:
            write_partition_metadata(self._files, log.directory, log.topic_id)
        except OSError as error:
            # A file that is only torn can wait, and so can one that the first append writes.
            if shortage(error, log.directory) is None or (missing and log.on_disk):
                raise

    def _open_closed(self, key: Key, config: LogConfig) -> PartitionLog:
        """Open a partition that nobody has asked for, to stay open; whoever asks brings the leader epoch."""
        topic_id = self._topic_id_in(self._path_of(key))
        if not topic_id:
            raise InconsistentTopicId(f"{self._path_of(key)} has no topic id")
        log = self._logs[key] = self._open_log(key, topic_id, config, 0)
        log.hold_appends(self.held)
        return log

    def hold_appends(self, reason: StorageError | None) -> None:
        self.held = reason
        for log in self._logs.values():
            log.hold_appends(reason)

    def check_writable(self) -> Pending[None]:
        path = os.path.join(self.path, names.PROBE)

        def check() -> None:
            self._files.write_bytes(path, bytes(_PROBE_BYTES), sync=False)
            self._files.unlink_if_exists(path)

        return self._worker.run(check)

    def missing(self) -> list[Key]:
        starts = self._checkpointer.log_starts
        return [
            key
            for key, end in self._checkpointer.recovery_points.items()
            if key not in self._partitions and key not in self._logs and end > starts.get(key, 0)
        ]

    def restore(self, topic: str, partition: int) -> None:
        self._files.make_directory(self._path_of((topic, partition)))
        self._partitions[topic, partition] = None

    def forget(self, topic: str, partition: int) -> None:
        self._checkpointer.forget(topic, partition)

    def offsets(self, topic: str, partition: int) -> tuple[int, int]:
        key = (topic, partition)
        log = self._logs.get(key) or self._recovered.get(key)
        if log is not None:
            return log.log_start_offset, log.log_end_offset
        if key not in self._partitions:
            return 0, 0
        starts, ends = self._checkpointer.log_starts, self._checkpointer.recovery_points
        if key not in starts or key not in ends:
            with self._briefly_open(key, LogConfig()) as log:
                return log.log_start_offset, log.log_end_offset
        return starts[key], ends[key]

    @contextmanager
    def _briefly_open(self, key: Key, config: LogConfig) -> Iterator[PartitionLog]:
        """A partition that nobody has asked for, opened for upkeep."""
        log, _ = self._load(key, bytes(16), config, 0, clean=True)
        if log.published_point < log.log_end_offset:  # recovered, but not yet in all its files
            self._recovered[key] = log
            yield log
            return
        try:
            yield log
            log.complete()
            self._checkpointer.remember(log)
        finally:
            log.release(StorageError(f"{key[0]}-{key[1]} is closed"))

    def delete_partition(self, topic: str, partition: int, topic_id: bytes) -> None:
        key = (topic, partition)
        log = self._logs.get(key)
        path = self._path_of(key)
        delay_ms = LogConfig().file_delete_delay_ms
        if log is not None:
            if log.topic_id != topic_id:
                return
            delay_ms = log.config.file_delete_delay_ms
            del self._logs[key]
            log.mark_deleted()
            if not log.on_disk and not self._files.exists(path):
                return
        elif key not in self._partitions or self._other_topic_id(path, topic_id):
            return
        elif key in self._recovered:
            self._recovered.pop(key).mark_deleted()
        self._compactor.forget(key)
        self._partitions.pop(key, None)
        self._closed_sizes.pop(key, None)
        self._damage.pop(key, None)
        self.losses.pop(key, None)
        self._unreadable.pop(key, None)
        self._checkpointer.forget(topic, partition)
        target = os.path.join(self.path, names.deleted_directory(topic, partition))
        if self._image is not None:
            self._image.moving(key, target)
        try:
            self._files.rename(path, target)
        except OSError as error:
            self._partitions[key] = None
            where = f"{path} cannot be deleted"
            raise shortage(error, where) or StorageError(f"{where}: {error}") from error
        self._removal.add([target], self._now_ms + delay_ms)

    def _other_topic_id(self, path: str, topic_id: bytes) -> bool:
        try:
            return self._topic_id_in(path) not in (topic_id, b"")
        except OSError as error:
            raise _failed(error, path) from error

    def partitions(self) -> list[Key]:
        return [*self._partitions, *(key for key, log in self._logs.items() if log.on_disk)]

    @property
    def judges_transactions(self) -> bool:
        return False

    def prepare_reads(self, wanted: Callable[[], Iterator[WantedRead]], max_bytes: int) -> None:
        return None  # what is cold is found out, and loaded, by each read

    def sizes(self) -> Iterator[PartitionSize]:
        for key in self._partitions:
            yield PartitionSize(*key, self._closed_size(key))
        for (topic, partition), log in self._logs.items():
            yield PartitionSize(topic, partition, log.size_bytes)

    def size_of(self, topic: str, partition: int) -> int:
        key = (topic, partition)
        log = self._logs.get(key)
        if log is not None:
            return log.size_bytes
        return self._closed_size(key) if key in self._partitions else 0

    def _closed_size(self, key: Key) -> int:
        size = self._closed_sizes.get(key)
        if size is None:
            files = self._files.sizes(self._path_of(key)).items()
            size = self._closed_sizes[key] = sum(size for name, size in files if name.endswith(names.LOG))
        return size

    @property
    def descriptors(self) -> int:
        return self._context.descriptors.capacity

    @property
    def compaction(self) -> CompactionStats:
        """What was compacted since the start."""
        return self._compactor.totals

    def total_bytes(self) -> int:
        return self._files.space(self.path)[0]

    def usable_bytes(self) -> int:
        return self._files.space(self.path)[1]

    # images

    def begin_image(self, name: str) -> Image:
        if self._image is not None:
            raise Shortage("an image is being made already")

        def ended() -> None:
            self._image = None

        logs = [*self._logs.values(), *self._recovered.values()]
        closed = [key for key in self._partitions if key not in self._recovered]
        contents = self._checkpointer.contents()
        self._image = Image(
            self._files, self._worker, self.path, name, logs, closed, contents, self._now_ms, ended
        )
        return self._image

    def remove_image(self, name: str) -> Pending[None]:
        parent = os.path.join(self.path, names.IMAGES)
        removed = self._worker.run(lambda: remove_image(self._files, os.path.join(parent, name)))

        def leave_nothing(_: Pending[None]) -> None:
            """A Kafka takes no directory that it does not know. Nobody makes an image while this runs."""
            with suppress(OSError):
                self._files.remove_directory(parent)

        removed.then(leave_nothing)
        return removed

    def _remove_images(self, path: str) -> None:
        def removed(result: Pending[None]) -> None:
            try:
                result.result()
            except OSError as error:
                logger.warning("%s could not be removed: %s", path, error)

        self._worker.run(lambda: remove_image(self._files, path)).then(removed)

    # from time to time

    def reconfigure(self, settings: DirectoryConfig) -> None:
        self._settings = settings
        self._compactor.reconfigure(settings)

    def tick(self, now_ms: int) -> None:
        self._now_ms = now_ms
        self._flusher.tick(now_ms)
        if self._image is not None:  # nothing moves its files for the moment
            return
        self._checkpointer.tick(now_ms)
        if now_ms >= self._next_retention_ms:
            self._next_retention_ms = now_ms + self._settings.retention_check_interval_ms
            self._to_retain = [*self._logs, *self._partitions]
        if self._to_retain:
            self._retain()
        if now_ms >= self._next_expiry_ms:
            self._next_expiry_ms = now_ms + self._settings.producer_id_expiration_check_interval_ms
            for log in self._logs.values():
                log.expire_producers(now_ms, self._settings.producer_id_expiration_ms)
        if now_ms >= self._next_producer_look_ms:
            self._next_producer_look_ms = now_ms + CHECK_INTERVAL_MS
            limit_producers(self._logs.values(), self._settings.max_producer_ids)
        self._compactor.tick(now_ms)
        if self._checkpointer.log_starts_published:
            self._removal.tick(now_ms)

    def next_deadline(self) -> int:
        deadline = min(self._next_retention_ms, self._next_expiry_ms, self._checkpointer.next_deadline())
        if self._to_retain:
            deadline = min(deadline, self._now_ms + _SOON_MS)
        deadline = self._compactor.next_deadline(deadline)
        return self._removal.next_deadline(self._flusher.next_deadline(deadline))

    def _retain(self) -> None:
        """Apply retention to the next few partitions."""
        effort = _RETENTION_EFFORT
        while self._to_retain and effort > 0:
            key = self._to_retain.pop()
            try:
                log = self._logs.get(key)
                effort -= 1
                if log is not None:
                    log.apply_retention(self._now_ms)
                elif key in self._partitions:
                    effort -= self._retain_closed(key)
            except (OSError, StorageError) as error:
                logger.warning("retention of %s-%d failed: %s", *key, error)

    def _retain_closed(self, key: Key) -> int:
        config = self.config_source(key[0]) if self.config_source is not None else None
        if config is None or not config.delete or (config.retention_ms < 0 and config.retention_bytes < 0):
            return 0
        if config.retention_bytes < 0 and self._now_ms < self._not_before.get(key, 0):
            return 0
        with self._briefly_open(key, config) as log:
            log.apply_retention(self._now_ms)
            self._not_before[key] = log.oldest_timestamp(MAX_LONG) + config.retention_ms
        return _OPENING_EFFORT

    def close(self) -> None:
        """Clean stop."""
        self._compactor.close()
        self._logs.update(self._recovered)
        clean = not self._unreadable and self.held is None
        for log in self._logs.values():
            if log.on_disk:
                try:
                    log.complete()
                except Shortage as error:
                    logger.warning("%s cannot be closed cleanly: %s", log, error)
                    clean = False
                except StorageError:
                    logger.exception("%s cannot be closed cleanly", log)
                    clean = False
                clean = clean and not log.fenced
        try:
            self._files.sync_file_system(self._handle)
            for log in self._logs.values():
                if log.on_disk and not log.fenced:
                    log.all_synced()
                    self._checkpointer.remember(log)
            self._logs_closed()
            self._checkpointer.write()
            if clean:
                leave_clean_mark(self._files, self.path)
        except OSError as error:
            trace = shortage(error, self.path) is None
            logger.error("%s cannot be closed cleanly: %s", self.path, error, exc_info=trace)
        finally:
            self._logs_closed()
            self._handle.close()
            self._lock.close()

    def _logs_closed(self) -> None:
        for log in self._logs.values():
            log.release(StorageError(f"{log.topic}-{log.partition} is closed"))
        self._logs.clear()


def _failed(error: OSError, path: str) -> StorageError:
    """What is said of a partition that cannot be opened, this time or until the next start."""
    return shortage(error, path) or LogFenced(f"{path} cannot be opened: {error}")
