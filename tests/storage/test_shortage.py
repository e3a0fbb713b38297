"""Descriptors run out at any moment, for a while: nothing is fenced or lost, and all goes on afterwards.

The workload is that of the fault sweep. Where the sweep lets one operation fail, here whatever needs a
descriptor fails a few times.
"""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import pytest

from kbroker.storage.errors import Shortage, StorageError
from kbroker.storage.files import OpenFile
from kbroker.storage.interface import Appended
from kbroker.storage.partition.log import PartitionLog

from .faults import FaultyFiles
from .support import NOW, Storage, batch, contents, read, transactional
from .test_fault_sweep import SETTINGS, Workload, check

T = TypeVar("T")

SPANS = (1, 4)


class ScarceFiles(FaultyFiles):
    """The `target`th operation that needs a descriptor, and the next few, get none."""

    def __init__(self, target: int = -1, span: int = 0) -> None:
        super().__init__()
        self.failing = range(target, target + span)
        self.opened = 0
        self.exhausted = False

    def _need(self, action: Callable[[], T]) -> T:
        number, self.opened = self.opened, self.opened + 1
        if self.exhausted or number in self.failing:
            raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))
        return action()

    def open(self, path: str, *, write: bool = False, create: bool = False) -> OpenFile:
        return self._need(lambda: super(ScarceFiles, self).open(path, write=write, create=create))

    def sync_directory(self, path: str) -> None:
        self._need(lambda: super(ScarceFiles, self).sync_directory(path))

    def names(self, path: str) -> list[str]:
        return self._need(lambda: super(ScarceFiles, self).names(path))

    def sizes(self, path: str) -> dict[str, int]:
        return self._need(lambda: super(ScarceFiles, self).sizes(path))


class PatientWorkload(Workload):
    """What waits for the disk is waited for while time goes on."""

    def _acknowledge(self, appended: Appended) -> None:
        assert self.storage is not None
        directory = self.storage.directory
        for _ in range(10):
            if appended.durable is None or appended.durable.done:
                break
            directory.tick(directory._now_ms + 100)  # type: ignore[attr-defined]
        super()._acknowledge(appended)


def fenced(storage: Storage) -> list[PartitionLog]:
    return [log for log in storage.directory._logs.values() if log.fenced]  # type: ignore[attr-defined]


@pytest.mark.slow
@pytest.mark.parametrize("fsync", [False, True], ids=["written", "fsync"])
@pytest.mark.parametrize("span", SPANS)
def test_whenever_descriptors_run_out_nothing_is_fenced_or_lost(
    memory_path: Path, quiet_log: None, fsync: bool, span: int
) -> None:
    files = ScarceFiles()
    PatientWorkload(memory_path / "rehearsal", files, fsync=fsync).run()
    files.abandon()
    assert files.opened > 100
    for target in range(files.opened):
        files = ScarceFiles(target, span)
        workload = PatientWorkload(memory_path / f"{target}", files, fsync=fsync)
        try:
            workload.run()
            assert workload.storage is None or fenced(workload.storage) == []  # None: it did not start
            check(workload)
        except Exception as error:
            error.add_note(f"no descriptors from the {target}th on, for {span}")
            raise


@pytest.fixture
def scarce(memory_path: Path) -> ScarceFiles:
    return ScarceFiles()


def test_a_sync_that_gets_no_descriptor_is_tried_again_and_its_waiters_wait(
    memory_path: Path, scarce: ScarceFiles
) -> None:
    storage = Storage(memory_path / "data", files=scarce, fsync=True)
    log = storage.log()
    log.append_as_leader(batch("before"), NOW)
    scarce.exhausted = True
    storage.directory._context.descriptors.close(log.segments[-1].file)  # type: ignore[attr-defined]
    with pytest.raises(Shortage):
        log.append_as_leader(batch("refused"), NOW)
    scarce.exhausted = False
    log.append_as_leader(batch("between"), NOW)
    log._unsynced.add_directories(str(memory_path))  # type: ignore[attr-defined]
    scarce.exhausted = True
    appended = log.append_as_leader(batch("waits"), NOW)
    assert appended.durable is not None
    assert not appended.durable.done
    storage.directory.tick(NOW + 100)
    assert not appended.durable.done
    scarce.exhausted = False
    storage.directory.tick(NOW + 300)
    appended.durable.result()
    assert contents(log) == [(0, "before"), (1, "between"), (2, "waits")]
    storage.directory.close()


def test_a_partition_that_could_not_be_opened_for_want_of_descriptors_can_be_later(
    memory_path: Path, scarce: ScarceFiles
) -> None:
    storage = Storage(memory_path / "data", files=scarce)
    storage.log().append_as_leader(batch("value"), NOW)
    storage.reopen()
    scarce.exhausted = True
    for _ in range(3):
        with pytest.raises(Shortage):
            storage.log()
    scarce.exhausted = False
    log = storage.log()
    log.append_as_leader(batch("later"), NOW)
    assert contents(log) == [(0, "value"), (1, "later")]
    storage.directory.close()


def test_an_abort_marker_is_refused_whole_when_the_aborted_transactions_cannot_be_read(
    memory_path: Path, scarce: ScarceFiles
) -> None:
    storage = Storage(memory_path / "data", files=scarce)
    log = storage.log()
    for sequence, commit in ((0, False), (1, True)):
        log.append_as_leader(transactional(sequence, f"transaction {sequence}"), NOW)
        log.append_control(7, 0, commit=commit, coordinator_epoch=0, now_ms=NOW)
    log.append_as_leader(transactional(2, "open"), NOW)
    storage.reopen()
    log = storage.log()
    end_offset = log.log_end_offset
    read(log, 0)  # the log file is open
    scarce.exhausted = True
    with pytest.raises(Shortage):
        log.append_control(7, 0, commit=False, coordinator_epoch=0, now_ms=NOW)
    assert log.log_end_offset == end_offset
    scarce.exhausted = False
    log.append_control(7, 0, commit=False, coordinator_epoch=0, now_ms=NOW)
    found = read(log, 0, committed=True)
    assert [aborted.first_offset for aborted in found.aborted] == [0, 4]
    storage.directory.close()


def test_deleted_files_are_removed_once_there_are_descriptors(memory_path: Path, scarce: ScarceFiles) -> None:
    storage = Storage(memory_path / "data", files=scarce)
    log = storage.log()
    log.append_as_leader(batch("value"), NOW)
    storage.directory.delete_partition(log.topic, log.partition, log.topic_id)
    scarce.exhausted = True
    storage.directory.tick(NOW + 60_000)
    assert list((memory_path / "data").glob("*-delete"))
    scarce.exhausted = False
    storage.directory.tick(NOW + 62_000)
    assert not list((memory_path / "data").glob("*-delete"))
    storage.directory.close()


def test_a_segment_ends_also_when_its_indexes_cannot_be_written_yet(
    memory_path: Path, scarce: ScarceFiles, quiet_log: None
) -> None:
    storage = Storage(memory_path / "data", files=scarce, settings=SETTINGS)
    log = storage.log(segment_bytes=500)
    for number in range(3):
        log.append_as_leader(batch(f"{number}" + "x" * 100), NOW)
    before = scarce.opened
    scarce.failing = range(
        before + 1, before + 20
    )  # the new segment is opened, its predecessor's indexes are not
    log.append_as_leader(batch("rolls" + "x" * 200), NOW)
    assert len(log.segments) == 2
    scarce.failing = range(0)
    with contextlib.suppress(StorageError):
        storage.directory.tick(NOW + 2000)
    storage.reopen()
    assert storage.directory.clean_start
    assert [value[:5] for _, value in contents(storage.log())][-1] == "rolls"
    storage.directory.close()


def test_the_capacity_for_logs_outlives_a_shortage(memory_path: Path, scarce: ScarceFiles) -> None:
    storage = Storage(memory_path / "data", files=scarce)
    capacity = storage.directory.descriptors
    for partition in range(20):
        storage.log(partition=partition).append_as_leader(batch("value"), NOW)
    scarce.failing = range(scarce.opened + 1, scarce.opened + 2)  # the segment, behind partition.metadata
    storage.log(partition=20).append_as_leader(batch("value"), NOW)
    assert storage.directory.descriptors == capacity
    storage.directory.close()


def test_a_log_start_that_could_not_be_published_is_with_the_next_checkpoint(
    memory_path: Path, scarce: ScarceFiles
) -> None:
    storage = Storage(memory_path / "data", files=scarce, settings=SETTINGS)
    log = storage.log()
    log.append_as_leader(batch(count=3), NOW)
    for step in range(2):
        storage.directory.tick(NOW + 2000 + 100 * step)
    log.delete_records_before(2)
    scarce.exhausted = True
    storage.directory.tick(NOW + 2500)
    scarce.exhausted = False
    storage.directory.tick(NOW + 5000)
    storage.crash()
    assert storage.log().log_start_offset == 2
    storage.directory.close()


def test_compaction_waits_for_descriptors(memory_path: Path, scarce: ScarceFiles) -> None:
    storage = Storage(memory_path / "data", files=scarce)
    configs = {
        "segment_bytes": 300,
        "cleanup_policy": frozenset(("compact",)),
        "min_cleanable_dirty_ratio": 0.01,
        "min_compaction_lag_ms": 1,
    }
    log = storage.log(**configs)
    for number in range(10):
        log.append_as_leader(batch(f"{number} " + "x" * 80), NOW)
    storage.reopen()
    log = storage.log(**configs)
    scarce.exhausted = True
    for step in range(1, 5):
        storage.directory.tick(NOW + 20_000 * step)
    assert log.usable  # type: ignore[attr-defined]
    scarce.exhausted = False
    assert len(contents(log)) == 10
    storage.directory.close()
