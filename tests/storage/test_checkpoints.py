"""Publishing recovery points: when, of what, and that nothing old overwrites something new."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from kbroker.storage.durability import flusher
from kbroker.storage.durability.checkpoints import Offsets, decode

from .faults import QuickFiles
from .support import NOW, ManualWorker, Storage, batch, idempotent

MINUTE_MS = 60_000


@pytest.fixture
def worker() -> ManualWorker:
    return ManualWorker()


@pytest.fixture
def storage(tmp_path: Path, worker: ManualWorker) -> Iterator[Storage]:
    opened = Storage(tmp_path / "data", worker=worker, files=QuickFiles())
    yield opened
    opened.directory.close()


def published(storage: Storage, name: str = "recovery-point") -> Offsets:
    assert storage.path is not None
    return decode((storage.path / f"{name}-offset-checkpoint").read_bytes())


_MOST_LOGS = flusher._MANY * 3


def a_round(storage: Storage, worker: ManualWorker, now_ms: int = NOW + MINUTE_MS) -> None:
    for step in range(_MOST_LOGS + 10):  # on the slowest machine a tick gets through one log
        storage.directory.tick(now_ms + step)
        worker.run_all()


def test_once_a_minute_the_end_of_every_changed_log_is_published(
    storage: Storage, worker: ManualWorker
) -> None:
    for partition in range(3):
        storage.log("topic", partition).append_as_leader(batch(count=partition + 1), NOW)
    a_round(storage, worker)
    assert published(storage) == {("topic", 0): 1, ("topic", 1): 2, ("topic", 2): 3}
    assert published(storage, "replication") == published(storage)
    storage.log("topic", 1).append_as_leader(batch(), NOW)
    a_round(storage, worker, NOW + 2 * MINUTE_MS + 200)
    assert published(storage)[("topic", 1)] == 3


def test_an_end_is_not_published_before_it_is_on_disk(storage: Storage, worker: ManualWorker) -> None:
    log = storage.log()
    log.append_as_leader(batch(), NOW)
    storage.directory.tick(NOW + MINUTE_MS)  # asks for a sync, which does not happen
    storage.directory.tick(NOW + MINUTE_MS + 100)
    log.append_as_leader(batch(), NOW)
    assert log.published_point == 0  # type: ignore[attr-defined]
    a_round(storage, worker, NOW + MINUTE_MS + 200)
    assert published(storage) == {("topic", 0): 1}  # what was written before the sync began


def test_what_an_idle_log_published_is_not_written_again(storage: Storage, worker: ManualWorker) -> None:
    storage.log().append_as_leader(batch(), NOW)
    a_round(storage, worker)
    assert storage.path is not None
    path = storage.path / "recovery-point-offset-checkpoint"
    before = path.stat().st_ino
    a_round(storage, worker, NOW + 3 * MINUTE_MS)
    assert path.stat().st_ino == before


def test_thousands_of_logs_are_published_with_one_syncfs(
    storage: Storage, worker: ManualWorker, monkeypatch: pytest.MonkeyPatch
) -> None:
    count = _MOST_LOGS
    for partition in range(count):
        storage.log("topic", partition).append_as_leader(idempotent(0), NOW)
    calls: list[str] = []
    monkeypatch.setattr(QuickFiles, "sync_file_system", lambda *_: calls.append("syncfs"))
    monkeypatch.setattr(QuickFiles, "sync", lambda *_: calls.append("sync"))
    storage.directory.tick(NOW + 1000)
    worker.run_all()
    calls.clear()
    a_round(storage, worker)
    assert len(published(storage)) == count
    assert calls.count("syncfs") == 1
    assert calls.count("sync") <= 4  # the checkpoints themselves


def test_an_older_checkpoint_does_not_overwrite_a_newer_one(storage: Storage, worker: ManualWorker) -> None:
    log = storage.log()
    log.append_as_leader(batch(count=5), NOW)
    a_round(storage, worker)
    log.delete_records_before(1)
    storage.directory.tick(NOW + MINUTE_MS + 500)
    slow = list(worker.jobs)  # a worker that has not got to it yet
    worker.jobs.clear()
    log.append_as_leader(batch(), NOW)
    storage.reopen()
    assert published(storage) == {("topic", 0): 6}
    for function, _ in slow:
        function()
    assert published(storage) == {("topic", 0): 6}
    assert storage.directory.offsets("topic", 0) == (1, 6)


def test_a_log_on_a_full_disk_keeps_its_old_recovery_point(
    storage: Storage, worker: ManualWorker, monkeypatch: pytest.MonkeyPatch
) -> None:
    import errno

    log = storage.log()
    log.append_as_leader(batch(), NOW)
    a_round(storage, worker)
    log.append_as_leader(batch(), NOW)

    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "no room")

    with monkeypatch.context() as patched:
        patched.setattr(QuickFiles, "write_all", full)
        a_round(storage, worker, NOW + 2 * MINUTE_MS)
    assert published(storage) == {("topic", 0): 1}
    a_round(storage, worker, NOW + 4 * MINUTE_MS)
    assert published(storage) == {("topic", 0): 2}
