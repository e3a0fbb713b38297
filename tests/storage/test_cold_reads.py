"""Reads of what is not in the page cache: the caller's thread never waits for the disk."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from kbroker.pending import Pending
from kbroker.storage.errors import LogDeleted, LogFenced, OffsetOutOfRange
from kbroker.storage.files import Files, OpenFile, WouldBlock
from kbroker.storage.interface import Buffer, Log, Slice

from .support import NOW, TOPIC_ID, ManualWorker, Storage, batch, records_in


class ColdFiles(Files):
    """A page cache that holds only what a worker has read: whole pages, each known by its place."""

    PAGE = 512

    def __init__(self) -> None:
        super().__init__()
        self.cold = False
        self.warm: set[tuple[int, int]] = set()
        self.waited_for: list[int] = []
        self.error: OSError | None = None

    def _pages(self, file: OpenFile, size: int, position: int) -> list[tuple[int, int]]:
        import os

        inode = os.fstat(file.fd).st_ino
        return [
            (inode, page) for page in range(position // self.PAGE, (position + size - 1) // self.PAGE + 1)
        ]

    def read_at(self, file: OpenFile, size: int, position: int) -> bytes:
        if self.error is not None:
            raise self.error
        self.warm.update(self._pages(file, size, position))
        if self.cold:
            self.waited_for.append(size)
        return super().read_at(file, size, position)

    def load_pages(self, file: OpenFile, size: int, position: int) -> None:
        if self.error is not None:
            raise self.error
        super().load_pages(file, size, position)
        self.warm.update(self._pages(file, size, position))
        self.waited_for.append(size)

    def read_cached(self, file: OpenFile, size: int, position: int) -> Buffer:
        if not self.cold:
            return super().read_at(file, size, position)
        available = 0
        for page in self._pages(file, size, position):
            if page not in self.warm:
                break
            available = (page[1] + 1) * self.PAGE - position
        if available <= 0:
            raise WouldBlock(file, size, position)
        return super().read_at(file, min(size, available), position)


@pytest.fixture
def files() -> ColdFiles:
    return ColdFiles()


@pytest.fixture
def worker() -> ManualWorker:
    return ManualWorker()


@pytest.fixture
def storage(tmp_path: Path, files: ColdFiles, worker: ManualWorker) -> Iterator[Storage]:
    opened = Storage(tmp_path / "data", files=files, worker=worker)
    yield opened
    files.error = None
    worker.run_all()
    opened.directory.close()


@pytest.fixture
def log(storage: Storage, files: ColdFiles) -> Log:
    """Some segments on disk, nothing in the page cache."""
    log = storage.log(segment_bytes=5000, index_interval_bytes=500)
    for index in range(100):
        log.append_as_leader(batch(f"{index:04d}" + "x" * 200, timestamp=NOW + index), NOW)
    storage.reopen()
    log = storage.log(segment_bytes=5000, index_interval_bytes=500)
    files.cold = True
    files.warm.clear()
    files.waited_for.clear()
    return log


def later(result: object) -> Pending[Slice]:
    assert isinstance(result, Pending)
    return result


@pytest.mark.parametrize("offset", [0, 1, 17, 50, 99])
def test_a_cold_read_is_answered_later_and_right(log: Log, worker: ManualWorker, offset: int) -> None:
    pending = later(log.read(offset, 2000))
    assert not pending.done
    worker.run_all()
    found = pending.result()
    assert records_in(found)[0].offset == offset


def test_a_warm_read_is_answered_at_once(log: Log, files: ColdFiles, worker: ManualWorker) -> None:
    later(log.read(17, 2000))
    worker.run_all()
    before = len(files.waited_for)
    assert isinstance(log.read(17, 2000), Slice)
    assert len(files.waited_for) == before


def test_what_is_warm_is_returned_without_waiting_for_the_rest(log: Log, files: ColdFiles) -> None:
    found = log.read(0, 300)
    assert isinstance(found, Pending)
    files.read_at(log._segments[0].handle, 1024, 0)  # type: ignore[attr-defined]
    found = log.read(0, 5000)
    assert isinstance(found, Slice)
    assert 0 < found.size_bytes < 1024


def test_the_whole_log_can_be_read_cold(log: Log, files: ColdFiles, worker: ManualWorker) -> None:
    offset = 0
    seen: list[int] = []
    while offset < log.log_end_offset:
        files.warm.clear()
        found = log.read(offset, 700)
        if isinstance(found, Pending):
            worker.run_all()
            found = found.result()
        seen += [record.offset for record in records_in(found)]
        offset = found.next_offset
    assert seen == list(range(100))


def test_a_page_cache_that_forgets_at_once_does_not_starve_a_reader(
    log: Log, files: ColdFiles, worker: ManualWorker
) -> None:
    pending = later(log.read(42, 1000))
    while worker.jobs:
        worker.step()
        files.warm.clear()
    assert records_in(pending.result())[0].offset == 42


def test_timestamps_are_found_cold(log: Log, worker: ManualWorker) -> None:
    pending = later(log.offset_for_timestamp(NOW + 42))
    worker.run_all()
    assert pending.result().offset == 42  # type: ignore[attr-defined]


def test_a_reader_that_went_away_is_not_answered(log: Log, worker: ManualWorker) -> None:
    pending = later(log.read(0, 100))
    pending.abandon()
    worker.run_all()
    assert pending.abandoned


def test_a_log_deleted_meanwhile_says_so(storage: Storage, log: Log, worker: ManualWorker) -> None:
    pending = later(log.read(0, 100))
    storage.directory.delete_partition("topic", 0, TOPIC_ID)
    worker.run_all()
    with pytest.raises(LogDeleted):
        pending.result()


def test_records_deleted_meanwhile_are_out_of_range(log: Log, worker: ManualWorker) -> None:
    pending = later(log.read(0, 100))
    log.delete_records_before(5)
    worker.run_all()
    with pytest.raises(OffsetOutOfRange):
        pending.result()


def test_a_read_error_fences_the_log(log: Log, files: ColdFiles, worker: ManualWorker) -> None:
    pending = later(log.read(0, 100))
    files.error = OSError(5, "unreadable")
    worker.run_all()
    with pytest.raises(LogFenced):
        pending.result()


def test_where_the_cache_cannot_be_asked_every_read_is_answered_later(
    tmp_path: Path, worker: ManualWorker
) -> None:
    files = Files()
    storage = Storage(tmp_path / "other", files=files, worker=worker)
    files._nowait = files._never_waits = False
    log = storage.log()
    log.append_as_leader(batch("a"), NOW)
    pending = later(log.read(0, 100))
    worker.run_all()
    assert pending.result().next_offset == 1
    storage.directory.close()


def test_the_real_page_cache_answers_what_was_just_written(file_storage: Storage) -> None:
    log = file_storage.log()
    log.append_as_leader(batch("a"), NOW)
    assert isinstance(log.read(0, 100), Slice)


def test_a_read_of_nothing_does_not_wait_for_the_disk(log: Log, files: ColdFiles) -> None:
    """As for the partitions of a Fetch that come behind those that have filled its answer."""
    found = log.read(17, 0, min_one=False)
    assert isinstance(found, Slice)
    assert (found.size_bytes, found.next_offset, found.high_watermark) == (0, 17, 100)
