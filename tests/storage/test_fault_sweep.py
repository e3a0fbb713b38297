"""Every single operation on the disk fails in turn; what was acknowledged is there once, and nothing else is.

The workload touches everything: new partitions, rolls, fsync and not, an idempotent producer that sends again
what was not acknowledged, transactions, DeleteRecords, retention, deletion, checkpoints, a clean stop.
"""

from __future__ import annotations

import contextlib
import itertools
from pathlib import Path

import pytest

from kbroker.storage.config import DirectoryConfig
from kbroker.storage.errors import StorageError
from kbroker.storage.interface import Appended, Log

from .faults import Crash, FaultyFiles, QuickFiles
from .support import NOW, Storage, batch, idempotent, read_all, transactional

# Killed after an operation is killed before the next one.
FAULTS = {
    "error": ("open", "write", "truncate", "sync", "rename", "unlink", "make", "remove"),
    "full": ("open", "write", "rename", "make"),
    "torn": ("write",),
    "crash": ("open", "write", "truncate", "sync", "rename", "unlink", "make", "remove"),
}
DELETED_BEFORE = 2
SETTINGS = DirectoryConfig(
    retention_check_interval_ms=1000,
    retention_initial_delay_ms=1000,
    flush_offset_checkpoint_interval_ms=2000,
)


class Workload:
    def __init__(self, path: Path, files: FaultyFiles, *, fsync: bool) -> None:
        self.path = path
        self.files = files
        self.fsync = fsync
        self.acknowledged: dict[tuple[str, int], dict[int, str]] = {}
        self.tried: dict[tuple[str, int], list[str]] = {}
        self.deleted: set[tuple[str, int]] = set()
        self.storage: Storage | None = None

    def run(self) -> None:
        """Stops at the first crash; goes on after an error, as a broker does."""
        for stage in (self._first, self._second):
            try:
                self.storage = Storage(self.path, files=self.files, fsync=self.fsync, settings=SETTINGS)
            except (StorageError, OSError):
                continue  # the broker does not start: someone starts it again
            stage(self.storage)

    def _first(self, storage: Storage) -> None:
        configs = {"segment_bytes": 500, "index_interval_bytes": 100, "retention_ms": -1}
        sequence = itertools.count()
        for step in range(6):
            log = storage.log("plain", **configs)
            self._append(log, f"plain {step} " + "x" * 80)
            log = storage.log("keyed", **configs)
            number = next(sequence)
            value = f"keyed {step} " + "x" * 80
            # Sent until it is acknowledged, as a real producer does.
            for _ in range(3):
                if self._append(log, value, sequence=number):
                    break
            storage.directory.tick(NOW + step * 700)
        log = storage.log("together", **{**configs, "segment_bytes": 2000})
        for step in range(3):
            self._append_run(log, [f"together {step} {number} " + "x" * 80 for number in range(3)])
        log = storage.log("transactions", **configs)
        if self._append(log, "first", transactional_sequence=0):
            self._control(log, commit=False)
        if self._append(log, "second", transactional_sequence=1):
            self._control(log, commit=True)
        self._quietly(lambda: storage.log("plain", **configs).delete_records_before(DELETED_BEFORE))
        storage.directory.tick(NOW + 7000)
        expired = storage.log("expired", **{**configs, "retention_ms": 1})
        for number in range(3):
            self._append(expired, f"expired {number} " + "x" * 80)
        storage.directory.tick(NOW + 9000)
        self._append(expired, "expired later")
        doomed = storage.log("doomed", **configs)
        self._append(doomed, "doomed")
        self.deleted.add(("doomed", 0))
        self._quietly(lambda: storage.directory.delete_partition("doomed", 0, doomed.topic_id))
        storage.directory.tick(NOW + 80_000)
        storage.directory.close()

    def _second(self, storage: Storage) -> None:
        configs = {"segment_bytes": 700, "index_interval_bytes": 100, "retention_ms": -1}
        try:
            log = storage.log("plain", **configs)
        except (StorageError, OSError):
            return
        for step in range(4):
            self._append(log, f"again {step} " + "y" * 80)
        storage.directory.tick(NOW + 3000)
        storage.directory.tick(NOW + 6000)

    def _quietly(self, action: object) -> None:
        with contextlib.suppress(StorageError, OSError):
            action()  # type: ignore[operator]

    def _append(
        self, log: Log, value: str, *, sequence: int | None = None, transactional_sequence: int | None = None
    ) -> bool:
        if sequence is not None:
            data = idempotent(sequence, value)
        elif transactional_sequence is not None:
            data = transactional(transactional_sequence, value)
        else:
            data = batch(value)
        key = (log.topic, log.partition)
        self.tried.setdefault(key, []).append(value)
        try:
            appended = log.append_as_leader(data, NOW)
            self._acknowledge(appended)
        except (StorageError, OSError):
            return False
        self.acknowledged.setdefault(key, {})[appended.base_offset] = value
        return True

    def _acknowledge(self, appended: Appended) -> None:
        if appended.durable is not None:
            appended.durable.result()

    def _append_run(self, log: Log, values: list[str]) -> None:
        """In one write; if that fails, one by one."""
        key = (log.topic, log.partition)
        self.tried.setdefault(key, []).extend(values)
        try:
            offsets = log.append_run([batch(value) for value in values], NOW)
        except (StorageError, OSError):
            return
        if offsets is not None:
            self.acknowledged.setdefault(key, {}).update(zip(offsets, values, strict=True))
            return
        for value in values:
            self.tried[key].remove(value)
            self._append(log, value)

    def _control(self, log: Log, *, commit: bool) -> None:
        self._quietly(lambda: log.append_control(7, 0, commit=commit, coordinator_epoch=0, now_ms=NOW))


def check(workload: Workload) -> None:
    """Open what is left with a disk that works, and compare."""
    workload.files.abandon()
    storage = Storage(workload.path, files=QuickFiles(), settings=SETTINGS)
    for key in workload.tried:
        if key in workload.deleted:
            continue
        log = storage.log(*key)
        found = {record.offset: (record.value or b"").decode() for record in read_all(log)}
        assert len(found) == len(set(found.values())), f"{key}: something is there twice"
        if key != ("expired", 0):
            assert log.log_start_offset in (0, DELETED_BEFORE if key == ("plain", 0) else 0)
        for offset, value in workload.acknowledged.get(key, {}).items():
            assert offset < log.log_start_offset or found.get(offset) == value
            assert offset < log.log_end_offset
        assert set(found.values()) <= set(workload.tried[key])
        again = log.append_as_leader(batch("after"), NOW)
        assert again.base_offset == log.log_end_offset - 1
    storage.directory.close()
    storage = Storage(workload.path, files=QuickFiles(), settings=SETTINGS)
    assert storage.directory.clean_start
    storage.directory.close()


def rehearse(path: Path, *, fsync: bool) -> list[str]:
    """The operations of a run in which nothing fails."""
    files = FaultyFiles()
    workload = Workload(path / "rehearsal", files, fsync=fsync)
    workload.run()
    check(workload)
    return files.operations


@pytest.mark.slow
@pytest.mark.parametrize("fsync", [False, True], ids=["written", "fsync"])
@pytest.mark.parametrize("fault", FAULTS)
def test_whatever_operation_fails_nothing_acknowledged_is_lost(
    memory_path: Path, quiet_log: None, fsync: bool, fault: str
) -> None:
    operations = rehearse(memory_path, fsync=fsync)
    assert len(operations) > 150
    for target, operation in enumerate(operations):
        if not operation.startswith(FAULTS[fault]):
            continue
        files = FaultyFiles(target, fault)
        workload = Workload(memory_path / f"{target}", files, fsync=fsync)
        with contextlib.suppress(Crash):
            workload.run()
        try:
            check(workload)
        except Exception as error:
            error.add_note(f"{fault} at operation {target}: {operation}")
            raise
