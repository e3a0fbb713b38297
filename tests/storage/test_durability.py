"""What is on disk when: flush.ms, flush.messages, fsync with group commit, full disks and failing ones."""

from __future__ import annotations

import errno
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from kbroker.storage.durability import flusher
from kbroker.storage.errors import DiskFull, LogFenced
from kbroker.storage.files import Files, OpenFile
from kbroker.storage.interface import Buffer

from .support import NOW, ManualWorker, Storage, batch, contents, idempotent, read


class CountingFiles(Files):
    def __init__(self) -> None:
        super().__init__()
        self.syncs = 0
        self.file_system_syncs = 0
        self.sync_error: OSError | None = None
        self.room: int | None = None  # bytes that may still be written to .log files

    def sync(self, file: OpenFile) -> None:
        self.syncs += 1
        if self.sync_error is not None:
            raise self.sync_error
        super().sync(file)

    def sync_file_system(self, directory: OpenFile) -> None:
        self.file_system_syncs += 1
        if self.sync_error is not None:
            raise self.sync_error
        super().sync_file_system(directory)

    def write_at(self, file: OpenFile, data: Buffer, position: int) -> int:
        if self.room is None:
            return super().write_at(file, data, position)
        if self.room <= 0:
            raise OSError(errno.ENOSPC, "no room")
        written = super().write_at(file, memoryview(data)[: self.room], position)
        self.room -= written
        return written

    def write_many_at(self, file: OpenFile, parts: Sequence[Buffer], position: int) -> int:
        return self.write_at(file, b"".join(parts), position)


@pytest.fixture
def files() -> CountingFiles:
    return CountingFiles()


@pytest.fixture
def worker() -> ManualWorker:
    return ManualWorker()


def opened(tmp_path: Path, files: Files, worker: ManualWorker, *, fsync: bool) -> Iterator[Storage]:
    storage = Storage(tmp_path / "data", files=files, worker=worker, fsync=fsync)
    yield storage
    worker.run_all()
    files.sync_error = None  # type: ignore[attr-defined]
    files.room = None  # type: ignore[attr-defined]
    storage.directory.close()


@pytest.fixture
def lazy(tmp_path: Path, files: CountingFiles, worker: ManualWorker) -> Iterator[Storage]:
    yield from opened(tmp_path, files, worker, fsync=False)


@pytest.fixture
def fsyncing(tmp_path: Path, files: CountingFiles, worker: ManualWorker) -> Iterator[Storage]:
    yield from opened(tmp_path, files, worker, fsync=True)


def test_by_default_an_append_is_committed_when_it_is_written(lazy: Storage, files: CountingFiles) -> None:
    log = lazy.log()
    assert log.append_as_leader(batch(), NOW).durable is None
    assert log.high_watermark == 1
    assert files.syncs == 0


def test_flush_ms_brings_it_to_the_disk(lazy: Storage, files: CountingFiles, worker: ManualWorker) -> None:
    log = lazy.log(flush_ms=1000)
    log.append_as_leader(batch(), NOW)
    log.append_as_leader(batch(), NOW + 10)
    assert lazy.directory.next_deadline() == NOW + 1000
    lazy.directory.tick(NOW + 999)
    assert not worker.jobs
    lazy.directory.tick(NOW + 1000)
    worker.run_all()
    assert files.syncs > 0
    assert log.recovery_point == 2  # type: ignore[attr-defined]
    before = files.syncs
    lazy.directory.tick(NOW + 5000)
    worker.run_all()
    assert files.syncs == before  # nothing was appended since


def test_with_fsync_an_append_is_committed_when_it_is_on_disk(
    fsyncing: Storage, worker: ManualWorker
) -> None:
    log = fsyncing.log()
    seen: list[int] = []
    log.watch(lambda: seen.append(log.high_watermark))
    appended = log.append_as_leader(batch("a"), NOW)
    assert appended.durable is not None
    assert not appended.durable.done
    assert (log.high_watermark, log.log_end_offset) == (0, 1)
    assert read(log, 0).size_bytes == 0
    worker.run_all()
    appended.durable.result()
    assert log.high_watermark == 1
    assert seen == [1]
    assert contents(log) == [(0, "a")]


def test_flush_messages_1_is_fsync_for_one_topic(lazy: Storage, worker: ManualWorker) -> None:
    log = lazy.log(flush_messages=1)
    appended = log.append_as_leader(batch(), NOW)
    assert appended.durable is not None
    assert log.high_watermark == 0
    worker.run_all()
    assert log.high_watermark == 1


def test_every_so_many_messages_the_append_waits_for_the_disk(lazy: Storage, worker: ManualWorker) -> None:
    log = lazy.log(flush_messages=3)
    assert log.append_as_leader(batch(), NOW).durable is None
    third = log.append_as_leader(batch(count=2), NOW).durable
    assert third is not None
    assert log.high_watermark == 3  # only the acknowledgement waits
    worker.run_all()
    third.result()
    assert log.append_as_leader(batch(), NOW).durable is None


def test_appends_that_wait_share_one_sync(
    fsyncing: Storage, files: CountingFiles, worker: ManualWorker
) -> None:
    log = fsyncing.log()
    first = log.append_as_leader(batch(), NOW).durable
    worker.run_all()
    before = files.syncs
    pending = [log.append_as_leader(batch(), NOW).durable for _ in range(10)]
    assert len(worker.jobs) == 1
    worker.step()  # the sync that began with the first of them
    assert [waiting is not None and waiting.done for waiting in pending] == [True] + [False] * 9
    worker.step()
    assert all(waiting is not None and waiting.done for waiting in pending)
    assert files.syncs - before == 2
    assert first is not None


def test_a_reader_sees_nothing_of_a_new_segment_before_it_is_on_disk(
    fsyncing: Storage, worker: ManualWorker
) -> None:
    log = fsyncing.log(segment_bytes=200)
    log.append_as_leader(batch("a" * 80), NOW)
    worker.run_all()
    log.append_as_leader(batch("b" * 80), NOW)
    log.append_as_leader(batch("c" * 80), NOW)
    assert [offset for offset, _ in contents(log)] == [0]
    worker.step()
    assert [offset for offset, _ in contents(log)] == [0, 1]
    worker.run_all()
    assert [offset for offset, _ in contents(log)] == [0, 1, 2]


def test_a_duplicate_waits_for_the_first_one_to_be_on_disk(fsyncing: Storage, worker: ManualWorker) -> None:
    log = fsyncing.log()
    log.append_as_leader(idempotent(0), NOW)
    again = log.append_as_leader(idempotent(0), NOW)
    assert again.duplicate
    assert again.durable is not None
    worker.run_all()
    again.durable.result()
    assert log.append_as_leader(idempotent(0), NOW).durable is None


def test_the_marker_of_a_transaction_counts_once_it_is_on_disk(
    fsyncing: Storage, worker: ManualWorker
) -> None:
    log = fsyncing.log()
    log.append_as_leader(idempotent(0, transactional=True), NOW)
    worker.run_all()
    assert (log.last_stable_offset, log.high_watermark) == (0, 1)
    log.append_control(7, 0, commit=True, coordinator_epoch=0, now_ms=NOW)
    assert (log.last_stable_offset, log.high_watermark) == (0, 1)
    worker.run_all()
    assert (log.last_stable_offset, log.high_watermark) == (2, 2)


def test_switching_fsync_off_commits_what_was_waiting(lazy: Storage, worker: ManualWorker) -> None:
    log = lazy.log(flush_messages=1)
    log.append_as_leader(batch(), NOW)
    lazy.log()
    assert log.high_watermark == 1
    lazy.log(flush_messages=1)
    log.append_as_leader(batch(), NOW)
    assert [offset for offset, _ in contents(log)] == [0]
    worker.run_all()
    assert [offset for offset, _ in contents(log)] == [0, 1]


def test_flush_answers_when_everything_is_on_disk(lazy: Storage, worker: ManualWorker) -> None:
    log = lazy.log()
    assert log.flush().done
    log.append_as_leader(batch(), NOW)
    flushed = log.flush()
    assert not flushed.done
    worker.run_all()
    flushed.result()
    assert log.flush().done


def test_many_dirty_logs_are_synced_by_one_syncfs(
    lazy: Storage, files: CountingFiles, worker: ManualWorker
) -> None:
    logs = [lazy.log(partition=partition) for partition in range(flusher._MANY + 1)]
    for log in logs:
        log.append_as_leader(batch(), NOW)
    lazy.directory.tick(NOW + 1000)
    assert len(worker.jobs) == 1
    worker.run_all()
    assert (files.syncs, files.file_system_syncs) == (0, 1)
    assert {log.recovery_point for log in logs} == {1}  # type: ignore[attr-defined]


def test_a_failed_sync_fences_the_log_and_acknowledges_nothing(
    fsyncing: Storage, files: CountingFiles, worker: ManualWorker
) -> None:
    log = fsyncing.log()
    other = fsyncing.log(partition=1)
    told: list[bool] = []
    log.watch(lambda: told.append(True))
    durable = log.append_as_leader(batch(), NOW).durable
    assert durable is not None
    files.sync_error = OSError(errno.EIO, "the disk is gone")
    worker.run_all()
    with pytest.raises(LogFenced):
        durable.result()
    with pytest.raises(LogFenced):
        log.append_as_leader(batch(), NOW)
    with pytest.raises(LogFenced):
        log.read(0, 100)
    assert log.high_watermark == 0
    assert told
    files.sync_error = None
    assert other.append_as_leader(batch(), NOW).base_offset == 0


def test_a_fenced_log_makes_the_stop_unclean(
    fsyncing: Storage, files: CountingFiles, worker: ManualWorker
) -> None:
    log = fsyncing.log()
    log.append_as_leader(batch("a"), NOW)
    files.sync_error = OSError(errno.EIO, "the disk is gone")
    worker.run_all()
    files.sync_error = None
    fsyncing.reopen()
    assert not fsyncing.directory.clean_start
    assert fsyncing.log().log_end_offset == 1


def test_a_write_error_fences_the_log(lazy: Storage, monkeypatch: pytest.MonkeyPatch) -> None:
    log = lazy.log()
    log.append_as_leader(batch("a"), NOW)

    def fail(*_: object) -> int:
        raise OSError(errno.EIO, "the disk is gone")

    with monkeypatch.context() as patched:
        patched.setattr(CountingFiles, "write_at", fail)
        with pytest.raises(LogFenced):
            log.append_as_leader(batch("b"), NOW)
    with pytest.raises(LogFenced):
        log.append_as_leader(batch("b"), NOW)
    lazy.reopen()
    assert contents(lazy.log()) == [(0, "a")]


@pytest.mark.parametrize("room", [0, 1, 50])
def test_a_full_disk_refuses_appends_until_there_is_room(
    lazy: Storage, files: CountingFiles, room: int
) -> None:
    log = lazy.log()
    log.append_as_leader(idempotent(0, "a"), NOW)
    size = log.size_bytes
    files.room = room
    for _ in range(3):
        with pytest.raises(DiskFull):
            log.append_as_leader(idempotent(1, "b"), NOW)
        files.room = room
    assert log.size_bytes == size
    assert (Path(log.directory) / "00000000000000000000.log").stat().st_size == size  # type: ignore[attr-defined]
    assert contents(log) == [(0, "a")]
    files.room = None
    assert not log.append_as_leader(idempotent(1, "b"), NOW).duplicate
    assert contents(log) == [(0, "a"), (1, "b")]


def test_a_disk_that_is_full_when_a_segment_ends_loses_nothing(lazy: Storage, files: CountingFiles) -> None:
    log = lazy.log(segment_bytes=400, index_interval_bytes=50)
    for index in range(3):
        log.append_as_leader(batch(f"{index}" * 90), NOW)
    files.room = 0
    with pytest.raises(DiskFull):
        log.append_as_leader(batch("y" * 90), NOW)
    files.room = None
    log.append_as_leader(batch("z" * 90), NOW)
    expected = contents(log)
    assert [offset for offset, _ in expected] == [0, 1, 2, 3]
    lazy.reopen()
    log = lazy.log(segment_bytes=400)
    assert contents(log) == expected
    assert [record for offset in range(4) for record in contents(log, offset=offset)[:1]] == expected


def test_a_new_partition_on_a_full_disk_is_made_once_there_is_room(
    lazy: Storage, files: CountingFiles
) -> None:
    files.room = 0
    log = lazy.log()
    with pytest.raises(DiskFull):
        log.append_as_leader(batch("a"), NOW)
    files.room = None
    log.append_as_leader(batch("a"), NOW)
    lazy.reopen()
    assert contents(lazy.log()) == [(0, "a")]
