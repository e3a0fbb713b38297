"""Opening a directory on a disk without room: what is there is served, and written out once there is some."""

from __future__ import annotations

import errno
import os
from collections.abc import Sequence
from pathlib import Path

import pytest

from kbroker.storage.errors import DiskFull
from kbroker.storage.files import OpenFile
from kbroker.storage.interface import Buffer

from .faults import QuickFiles
from .support import NOW, Storage, batch, committed_records, contents, idempotent, read, transactional
from .test_fault_sweep import SETTINGS
from .test_shortage import ScarceFiles

CONFIGS = {"segment_bytes": 500, "index_interval_bytes": 100, "retention_ms": -1}


class FullFiles(QuickFiles):
    """`full`: nothing can be written. `except_for`: but to files of this name."""

    def __init__(self) -> None:
        super().__init__()
        self.full = False
        self.except_for: str | None = None
        self._spared = -1

    def open(self, path: str, *, write: bool = False, create: bool = False) -> OpenFile:
        file = super().open(path, write=write, create=create)
        if self.except_for is not None and self.except_for in os.path.basename(path):
            self._spared = file.fd
        return file

    def write_at(self, file: OpenFile, data: Buffer, position: int) -> int:
        if self.full and len(data) and file.fd != self._spared:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return super().write_at(file, data, position)

    def write_many_at(self, file: OpenFile, parts: Sequence[Buffer], position: int) -> int:
        return self.write_at(file, b"".join(parts), position)


@pytest.fixture
def files() -> FullFiles:
    return FullFiles()


@pytest.fixture
def storage(tmp_path: Path, files: FullFiles) -> Storage:
    """A log of several segments, with an idempotent producer and an aborted transaction."""
    storage = Storage(tmp_path / "data", files=files, settings=SETTINGS)
    log = storage.log(**CONFIGS)
    log.append_as_leader(transactional(0, "aborted", producer_id=8), NOW)
    log.append_control(8, 0, commit=False, coordinator_epoch=0, now_ms=NOW)
    for number in range(10):
        log.append_as_leader(idempotent(number, f"{number} " + "x" * 80), NOW)
    return storage


@pytest.mark.parametrize("end", ["kill", "close"])
def test_what_is_there_is_read_and_known_without_room_and_written_with_it(
    storage: Storage, files: FullFiles, end: str
) -> None:
    before = contents(storage.log(**CONFIGS))
    files.full = True
    if end == "kill":
        storage.kill()
    else:
        storage.directory.close()
    storage.open()
    assert not storage.directory.clean_start
    assert storage.directory.offsets("topic", 0) == (0, 12)
    log = storage.log(leader_epoch=1, **CONFIGS)
    assert contents(log) == before
    assert [value for _, value in committed_records(log)] == [value for _, value in before[1:]]
    assert log.append_as_leader(idempotent(9, before[-1][1]), NOW).duplicate
    with pytest.raises(DiskFull):
        log.append_as_leader(idempotent(10, "next"), NOW)
    storage.directory.tick(NOW + 5000)
    files.full = False
    log.append_as_leader(idempotent(10, "next"), NOW)
    storage.directory.tick(NOW + 10_000)
    storage.directory.tick(NOW + 10_100)
    assert log.published_point == log.log_end_offset  # type: ignore[attr-defined]
    storage.reopen()
    assert storage.directory.clean_start
    assert contents(storage.log(**CONFIGS)) == [*before, (12, "next")]
    storage.directory.close()


def test_a_recovered_log_that_nobody_asks_for_is_written_out_by_the_next_clean_stop(
    storage: Storage, files: FullFiles
) -> None:
    before = contents(storage.log(**CONFIGS))
    files.full = True
    storage.crash()
    files.full = False
    storage.reopen()
    assert storage.directory.clean_start
    log = storage.log(**CONFIGS)
    assert contents(log) == before
    assert log.append_as_leader(idempotent(9, before[-1][1]), NOW).duplicate
    storage.directory.close()


def test_a_recovered_log_obeys_its_topics_retention_and_can_be_deleted(
    storage: Storage, files: FullFiles
) -> None:
    files.full = True
    storage.crash()
    storage.directory.config_source = lambda _: storage.log("other", **CONFIGS).config
    storage.directory.tick(NOW + 10**12)  # beyond any retention but that of the topic
    assert storage.directory.offsets("topic", 0) == (0, 12)
    storage.directory.delete_partition("topic", 0, storage.log("other").topic_id)
    assert storage.directory.partitions() == []
    assert storage.directory.offsets("topic", 0) == (0, 0)
    storage.directory.close()


def test_a_stop_that_could_not_write_everything_is_not_a_clean_one(
    storage: Storage, files: FullFiles
) -> None:
    """The mark that says so is small, and may find room where the rest did not."""
    before = contents(storage.log(**CONFIGS))
    files.full = True
    files.except_for = "checkpoint"
    storage.directory.close()
    files.full = False
    assert not list(Path(str(storage.path)).glob("*cleanshutdown*"))
    storage.open()
    log = storage.log(**CONFIGS)
    assert log.append_as_leader(idempotent(9, before[-1][1]), NOW).duplicate
    storage.directory.close()


def test_aborted_transactions_that_were_on_disk_stay_there_when_more_find_no_room(
    tmp_path: Path, files: FullFiles
) -> None:
    storage = Storage(tmp_path / "data", files=files, settings=SETTINGS)
    log = storage.log()
    for sequence in range(2):
        log.append_as_leader(transactional(sequence, f"aborted {sequence}"), NOW)
        log.append_control(7, 0, commit=False, coordinator_epoch=0, now_ms=NOW)
        files.full = sequence > 0
        for step in range(2):
            storage.directory.tick(NOW + 3000 * (sequence + 1) + 100 * step)
    assert log.published_point == 2  # type: ignore[attr-defined]
    storage.kill()
    files.full = False
    storage.open()
    assert [aborted.first_offset for aborted in read(storage.log(), 0, committed=True).aborted] == [0, 2]
    storage.directory.close()


def test_retention_of_a_whole_log_leaves_its_last_segment_when_there_is_no_room_for_a_new_one(
    tmp_path: Path,
) -> None:
    class NoNewFiles(QuickFiles):
        full = False

        def open(self, path: str, *, write: bool = False, create: bool = False) -> OpenFile:
            if self.full and create and not os.path.exists(path):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            return super().open(path, write=write, create=create)

    files = NoNewFiles()
    storage = Storage(tmp_path / "data", files=files)
    log = storage.log(segment_bytes=500, retention_ms=1)
    for number in range(6):
        log.append_as_leader(batch(f"{number} " + "x" * 200), NOW)
    assert len(log.segments) > 2
    files.full = True
    log.apply_retention(NOW + 1000)
    assert len(log.segments) == 1
    files.full = False
    log.apply_retention(NOW + 1000)
    assert log.log_start_offset == log.log_end_offset == 6
    storage.directory.close()


def test_held_logs_are_read_and_cut_and_append_nothing(storage: Storage) -> None:
    before = contents(storage.log(**CONFIGS))
    storage.directory.hold_appends(DiskFull("no room for the leader epoch"))
    for topic in ("topic", "new"):
        with pytest.raises(DiskFull, match="no room for the leader epoch"):
            storage.log(topic, **CONFIGS).append_as_leader(batch("value"), NOW)
    log = storage.log(**CONFIGS)
    assert log.append_run([batch("a"), batch("b")], NOW) is None
    assert contents(log) == before
    assert log.delete_records_before(3) == 3
    log.flush().result()
    storage.directory.hold_appends(None)
    for topic in ("topic", "new"):
        storage.log(topic, **CONFIGS).append_as_leader(batch("value"), NOW)
    storage.directory.hold_appends(DiskFull("no room for the leader epoch"))
    storage.reopen()
    assert not storage.directory.clean_start
    storage.directory.close()


def test_a_partition_that_could_not_be_recovered_for_want_of_descriptors_is_when_it_is_asked_for(
    storage: Storage,
) -> None:
    before = contents(storage.log(**CONFIGS))
    storage.kill()
    rehearsal = ScarceFiles()
    storage.open(rehearsal)
    storage.kill()
    late = 0
    for target in range(rehearsal.opened):
        scarce = ScarceFiles(target, 3)
        try:
            storage.open(scarce)
        except OSError:
            scarce.abandon()  # it did not start
            continue
        scarce.failing = range(0)
        late += bool(storage.directory._unreadable)  # type: ignore[attr-defined]
        log = storage.log(**CONFIGS)
        assert contents(log) == before
        assert log.append_as_leader(idempotent(9, before[-1][1]), NOW).duplicate
        storage.kill()
    assert late
    storage.open(QuickFiles())
    assert contents(storage.log(**CONFIGS)) == before
    storage.reopen()
    assert storage.directory.clean_start
    storage.directory.close()


def test_a_partition_whose_first_append_found_no_room_leaves_nothing_behind_when_it_is_deleted(
    tmp_path: Path, files: FullFiles
) -> None:
    storage = Storage(tmp_path / "data", files=files)
    log = storage.log()
    files.full = True
    with pytest.raises(DiskFull):
        log.append_as_leader(batch("value"), NOW)
    storage.directory.delete_partition(log.topic, log.partition, log.topic_id)
    storage.directory.tick(NOW + 60_000)
    files.full = False
    storage.reopen()
    assert storage.directory.partitions() == []
    storage.directory.close()


def test_a_partition_whose_first_append_found_no_room_is_empty_after_a_restart_and_takes_records_later(
    tmp_path: Path, files: FullFiles
) -> None:
    storage = Storage(tmp_path / "data", files=files)
    files.full = True
    with pytest.raises(DiskFull):
        storage.log().append_as_leader(batch("value"), NOW)
    storage.crash()
    log = storage.log()
    assert contents(log) == []
    with pytest.raises(DiskFull):
        log.append_as_leader(batch("value"), NOW)
    files.full = False
    log.append_as_leader(batch("value"), NOW)
    storage.crash()
    assert contents(storage.log()) == [(0, "value")]
    storage.directory.close()
