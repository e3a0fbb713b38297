"""Publishing how far every partition is on disk: recovery points, log starts and high watermarks.

A round asks every log that changed to write and sync what is derived from its data, a few at a time; when all
have, the checkpoints are written, on a worker. A log start that moved is published by itself, soon. How far
logs are compacted is written along.
"""

from __future__ import annotations

import contextlib
import logging
import os
import threading
import time
from collections.abc import Callable, Iterable
from functools import cached_property

from kbroker.pending import Pending
from kbroker.storage import names
from kbroker.storage.durability import checkpoints
from kbroker.storage.durability.flusher import Flusher
from kbroker.storage.errors import StorageError
from kbroker.storage.files import Files
from kbroker.storage.partition.log import PartitionLog
from kbroker.storage.worker import Worker

logger = logging.getLogger("kbroker.storage")

_SECONDS_PER_TICK = 0.003  # nobody waits much longer for the loop
_SOON_MS = 20


class Checkpointer:
    def __init__(
        self,
        files: Files,
        worker: Worker,
        flusher: Flusher,
        path: str,
        logs: Callable[[], Iterable[PartitionLog]],
        *,
        now_ms: int,
        interval_ms: int,
    ) -> None:
        self.recovery_points: checkpoints.Offsets = {}  # of partitions that are not open
        self.log_starts: checkpoints.Offsets = {}
        self.cleaner_offsets: checkpoints.Offsets = {}
        self.compacted_offsets: checkpoints.Offsets = {}  # below them offsets may be missing
        self._files = files
        self._worker = worker
        self._flusher = flusher
        self._path = path
        self._logs = logs
        self._interval_ms = interval_ms
        self._next_ms = now_ms + interval_ms
        self._now_ms = now_ms
        self._queue: list[PartitionLog] = []
        self._written: list[PartitionLog] = []
        self._round = False
        self._start_moved = False
        self._unwritten = False  # the last try failed
        self._writing = False
        self._asked_to_write: list[Pending[None]] = []  # by who is told when it is done
        self._version = 0  # of what was last to be written
        self._lock = threading.Lock()  # around what follows: also a worker writes
        self._version_on_disk = 0
        self._on_disk: dict[str, checkpoints.Offsets] = {}

    def read(self) -> None:
        """Raises ValueError if a checkpoint is unreadable; the others are read nevertheless."""
        unreadable: list[str] = []

        def read(name: str) -> checkpoints.Offsets:
            try:
                self._on_disk[name] = checkpoints.read(self._files, self._path, name)
            except ValueError as error:
                unreadable.append(f"{name}: {error}")
                return {}
            return dict(self._on_disk[name])

        self.recovery_points = read(names.RECOVERY_POINTS)
        self.log_starts = read(names.LOG_STARTS)
        self.cleaner_offsets = read(names.CLEANER_OFFSETS)
        name = names.COMPACTED_OFFSETS
        try:
            self._on_disk[name] = checkpoints.read_checked(self._files, self._path, name)
            self.compacted_offsets = dict(self._on_disk[name])
        except ValueError as error:
            logger.warning("%s: %s is unreadable: %s", self._path, name, error)
        if unreadable:
            raise ValueError("; ".join(unreadable))

    @cached_property
    def high_watermarks(self) -> checkpoints.Offsets:
        """Of partitions that are not open. A second witness of recovery points: a start does without it."""
        try:
            return checkpoints.read(self._files, self._path, names.HIGH_WATERMARKS)
        except ValueError as error:
            logger.warning("%s: %s is unreadable: %s", self._path, names.HIGH_WATERMARKS, error)
            return {}

    def log_start_moved(self) -> None:
        self._start_moved = True

    @property
    def log_starts_published(self) -> bool:
        """Whether it is on disk that what retention gave up is no part of any log; or cannot be written."""
        return not self._start_moved and not self._writing

    def next_deadline(self) -> int:
        if self._round:
            return self._now_ms + _SOON_MS
        return self._now_ms if self._start_moved and not self._writing else self._next_ms

    def tick(self, now_ms: int) -> None:
        self._now_ms = now_ms
        if not self._round and now_ms >= self._next_ms:
            self._next_ms = now_ms + self._interval_ms
            self._queue = [log for log in self._logs() if log.changed_since_checkpoint]
            self._round = bool(self._queue)
            if self._unwritten and not self._round and not self._writing:
                self._write_later()
        if self._round:
            self._go_on()
        if self._start_moved and not self._writing:
            self._write_later()

    def _go_on(self) -> None:
        """Let the next few logs write what is derived; then have all synced; then publish."""
        begin = time.monotonic()
        wrote = bool(self._queue)
        while self._queue and time.monotonic() - begin < _SECONDS_PER_TICK:
            log = self._queue.pop()
            with contextlib.suppress(StorageError):  # it keeps its old recovery point
                log.persist()
                self._written.append(log)
        if self._queue:
            return
        if wrote:
            self._flusher.request_all(self._written)
        if not self._flusher.busy_with(self._written):
            self._round = False
            self._written = []
            self._write_later()

    def compacted_offset(self, topic: str, partition: int) -> int:
        """Where to expect that offsets are missing below."""
        key = (topic, partition)
        if key in self.compacted_offsets or key not in self.cleaner_offsets:
            return self.compacted_offsets.get(key, 0)
        # Somebody else compacted it: Kafka, or an earlier kbroker.
        return max(self.cleaner_offsets[key], self.recovery_points.get(key, 0))

    # writing

    def forget(self, topic: str, partition: int) -> None:
        """The partition is deleted; soon the disk will not know it either."""
        key = (topic, partition)
        for offsets in (
            self.recovery_points,
            self.high_watermarks,
            self.log_starts,
            self.cleaner_offsets,
            self.compacted_offsets,
        ):
            offsets.pop(key, None)
        self._start_moved = True

    def forget_for_good(self, topic: str, partition: int) -> None:
        """Before a partition begins anew, nothing on disk may speak of an earlier one of its name."""
        key = (topic, partition)
        with self._lock:
            known = any(key in offsets for offsets in self._on_disk.values())
        if known and key not in self.recovery_points:
            self.write()

    def remember(self, log: PartitionLog) -> None:
        """The log is not open any more."""
        self.recovery_points[log.topic, log.partition] = log.published_point
        self.high_watermarks[log.topic, log.partition] = log.high_watermark
        self.log_starts[log.topic, log.partition] = log.log_start_offset
        if log.first_dirty_offset is not None:
            self.cleaner_offsets[log.topic, log.partition] = log.first_dirty_offset
        if log.compacted_offset:
            self.compacted_offsets[log.topic, log.partition] = log.compacted_offset

    def contents(self) -> dict[str, checkpoints.Offsets]:
        """Of all checkpoints, by name, as things are."""
        recovery_points, log_starts = dict(self.recovery_points), dict(self.log_starts)
        high_watermarks = dict(self.recovery_points)
        cleaner_offsets, compacted_offsets = dict(self.cleaner_offsets), dict(self.compacted_offsets)
        for log in self._logs():
            if log.on_disk:
                key = (log.topic, log.partition)
                recovery_points[key] = log.published_point
                log_starts[key] = log.log_start_offset
                high_watermarks[key] = log.high_watermark
                if log.first_dirty_offset is not None:
                    cleaner_offsets[key] = log.first_dirty_offset
                if log.compacted_offset:
                    compacted_offsets[key] = log.compacted_offset
        return {
            names.RECOVERY_POINTS: recovery_points,
            names.LOG_STARTS: log_starts,
            names.HIGH_WATERMARKS: high_watermarks,
            names.CLEANER_OFFSETS: cleaner_offsets,
            names.COMPACTED_OFFSETS: compacted_offsets,
        }

    def write(self) -> None:
        """Write all checkpoints now."""
        self._start_moved = False
        self._version += 1
        self._store(self._version, self.contents())

    def _store(self, version: int, contents: dict[str, checkpoints.Offsets]) -> None:
        """Bring these to the disk, unless newer ones are there. Called on any thread."""
        with self._lock:
            if version < self._version_on_disk:
                return
            for name, offsets in contents.items():
                if self._on_disk.get(name) != offsets and (offsets or name != names.COMPACTED_OFFSETS):
                    self._on_disk.pop(name, None)
                    path = os.path.join(self._path, name)
                    self._files.replace_bytes(path, checkpoints.encoded(name, offsets))
                    self._on_disk[name] = offsets
            self._version_on_disk = version

    def write_soon(self) -> Pending[None]:
        """Write all checkpoints, as they are now or later, on a worker; resolved when they are on disk."""
        told: Pending[None] = Pending()
        self._asked_to_write.append(told)
        if not self._writing:
            self._write_later()
        return told

    def _write_later(self) -> None:
        self._writing = True
        self._start_moved = self._unwritten = False
        self._version += 1
        version, contents = self._version, self.contents()
        asked, self._asked_to_write = self._asked_to_write, []

        def written(result: Pending[None]) -> None:
            self._writing = False
            try:
                result.result()
            except OSError as error:
                self._unwritten = True
                logger.warning("%s: the checkpoints could not be written: %s", self._path, error)
            for told in asked:
                told.follow(result)
            if self._asked_to_write and not self._writing:
                self._write_later()

        self._worker.run(lambda: self._store(version, contents)).then(written)
