"""What a log says that it did stays, whatever retention, compaction and a restart do to what it has."""

from __future__ import annotations

from pathlib import Path

import pytest

from kbroker.storage.counts import LogTotals
from kbroker.storage.interface import Log

from .compacting import Compacting, compacted
from .support import NOW, Storage, batch
from .test_retention import INTERVAL_MS, fill, retain


def totals(log: Log) -> LogTotals:
    found = LogTotals()
    found.add(log)
    return found


def test_what_was_appended_stays_when_retention_deletes_it(storage: Storage) -> None:
    log = storage.log(segment_bytes=600, retention_bytes=1000, retention_ms=-1)
    fill(log, 12)
    before = totals(log)
    assert (before.records, before.appends, before.deleted_segments) == (12, 12, 0)
    assert before.bytes_in == before.size_bytes == log.size_bytes
    retain(storage, NOW + INTERVAL_MS)
    after = totals(log)
    assert (after.records, after.bytes_in) == (12, before.bytes_in)
    assert after.deleted_segments == before.segments - after.segments > 0
    assert after.deleted_bytes == before.size_bytes - after.size_bytes > 0


@pytest.mark.parametrize("kind", ["files", "memory"])
def test_what_was_appended_stays_when_compaction_drops_it(kind: str, tmp_path: Path) -> None:
    topic = Compacting(tmp_path if kind == "files" else None, compacted())
    try:
        for number in range(20):
            topic.append(("key", f"value {number}"))
        topic.roll()
        before = totals(topic.log)
        topic.compact()
        after = totals(topic.log)
        assert after.size_bytes < before.size_bytes
        assert (after.bytes_in, after.records) == (before.bytes_in, before.records)
        assert after.deleted_bytes == 0
    finally:
        topic.directory.close()


def test_what_was_there_at_the_start_was_not_appended(file_storage: Storage) -> None:
    log = file_storage.log()
    fill(log, 3)
    file_storage.reopen()
    log = file_storage.log()
    assert (totals(log).records, totals(log).bytes_in, totals(log).appends) == (0, 0, 0)
    log.append_as_leader(batch("more"), NOW)
    assert (totals(log).records, totals(log).appends) == (1, 1)
    assert 0 < totals(log).bytes_in < log.size_bytes


def test_the_size_of_a_partition_is_known_whether_it_is_open_or_not(file_storage: Storage) -> None:
    log = file_storage.log()
    fill(log, 3)
    size = log.size_bytes
    assert file_storage.directory.size_of("topic", 0) == size
    file_storage.reopen()
    assert file_storage.directory.size_of("topic", 0) == size
    assert file_storage.directory.size_of("topic", 1) == 0


def test_syncs_are_timed(tmp_path: Path) -> None:
    storage = Storage(tmp_path / "data", fsync=True)
    try:
        storage.log().append_as_leader(batch("x"), NOW)
        assert storage.directory.counts.syncs.count >= 1
    finally:
        storage.directory.close()
