"""Bringing appended data to the disk: flush.ms, group commit, and one syncfs where many logs are due.

At most one sync of a log is under way; who asks meanwhile shares the next one. At most `_PARALLEL` logs are
synced side by side; when more than `_MANY` wait, one `syncfs` takes them all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from time import perf_counter
from typing import TYPE_CHECKING, NamedTuple

from kbroker.storage.durability.unsynced import Taken
from kbroker.storage.files import Files, OpenFile
from kbroker.storage.worker import Worker
from kbroker.times import Times

if TYPE_CHECKING:
    from kbroker.pending import Pending
    from kbroker.storage.partition.log import PartitionLog
    from kbroker.storage.partition.log_reader import Place

_PARALLEL = 8
_MANY = 64
_RETRY_MS = 100


class SyncJob(NamedTuple):
    """What must be on disk before a log may say that it is, up to an offset."""

    end_offset: int
    place: Place | None  # of the end offset
    files: list[OpenFile]
    taken: Taken  # what else of the log was not known to be on disk
    derived_point: int  # what is derived from the data below it is in the job too, or was in an earlier one

    def run(self, files: Files) -> None:
        for path in self.taken.paths:
            try:
                file = files.open(path)
            except FileNotFoundError:
                continue  # retention or compaction gave its segment up meanwhile
            try:
                files.sync(file)
            finally:
                file.close()
        files.sync_all(self.files, self.taken.directories)


class Flusher:
    def __init__(self, files: Files, worker: Worker, directory: OpenFile, times: Times) -> None:
        """``times``: where it is counted how long syncs take."""
        self._times = times
        self._files = files
        self._worker = worker
        self._directory = directory
        self._now_ms = 0
        self._due: dict[PartitionLog, int] = {}  # dirty logs, and when flush.ms wants them synced
        self._running: set[PartitionLog] = set()
        self._waiting: dict[PartitionLog, None] = {}

    # flush.ms

    def dirty(self, log: PartitionLog, due_ms: int) -> None:
        self._due.setdefault(log, due_ms)

    def retry(self, log: PartitionLog) -> None:
        """A sync did not come about; try again a little later."""
        self._due[log] = self._now_ms + _RETRY_MS

    def forget(self, log: PartitionLog) -> None:
        self._due.pop(log, None)
        self._waiting.pop(log, None)

    def next_deadline(self, default: int) -> int:
        return min(default, min(self._due.values(), default=default))

    def tick(self, now_ms: int) -> None:
        self._now_ms = now_ms
        due = [log for log, due_ms in self._due.items() if due_ms <= now_ms]
        for log in due:
            del self._due[log]
            self._waiting[log] = None
        if due:
            self._start()

    # syncing

    def request(self, log: PartitionLog) -> None:
        """Sync this log as soon as may be; `log.synced` tells."""
        self._waiting[log] = None
        self._start()

    def request_all(self, logs: Iterable[PartitionLog]) -> None:
        self._waiting.update(dict.fromkeys(logs))
        self._start()

    def busy_with(self, logs: Iterable[PartitionLog]) -> bool:
        """Whether a sync of one of these is under way or waits."""
        return any(log in self._running or log in self._waiting for log in logs)

    def _start(self) -> None:
        ready = [log for log in self._waiting if log not in self._running]
        if len(ready) > _MANY:
            self._sync_many(ready)
            return
        for log in ready:
            if len(self._running) >= _PARALLEL:
                return
            job = self._take(log) if log in self._waiting else None
            if job is not None:
                self._run(partial(job.run, self._files), [(log, job)])

    def _sync_many(self, logs: list[PartitionLog]) -> None:
        jobs = [(log, job) for log in logs if (job := self._take(log)) is not None]
        self._run(partial(self._files.sync_file_system, self._directory), jobs)

    def _take(self, log: PartitionLog) -> SyncJob | None:
        del self._waiting[log]
        self._due.pop(log, None)
        return log.begin_sync()

    def _run(self, work: Callable[[], None], jobs: list[tuple[PartitionLog, SyncJob]]) -> None:
        self._running.update(log for log, _ in jobs)

        def timed() -> float:
            began = perf_counter()
            work()
            return perf_counter() - began

        def finished(result: Pending[float]) -> None:
            self._running.difference_update(log for log, _ in jobs)
            try:
                self._times.add(result.result())
            except OSError as error:
                for log, job in jobs:
                    log.sync_failed(error, job.taken)
            else:
                for log, job in jobs:
                    log.synced(job)
            self._start()

        self._worker.run(timed).then(finished)
