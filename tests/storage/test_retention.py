"""Retention by time, size and log start, on logs of both kinds."""

from __future__ import annotations

import os

import pytest

from kbroker.storage.interface import Log

from .support import NOW, Storage, batch, read, read_all

INTERVAL_MS = 300_000


def fill(log: Log, count: int, *, step_ms: int = 0, start_ms: int = NOW) -> None:
    for index in range(count):
        log.append_as_leader(batch("x" * 100, timestamp=start_ms + index * step_ms), NOW)


def retain(storage: Storage, now_ms: int) -> None:
    storage.directory.tick(now_ms)
    while storage.directory.next_deadline() < now_ms + 1000:
        now_ms += 50
        storage.directory.tick(now_ms)


def segment_bases(log: Log) -> list[int]:
    return [segment.base_offset for segment in log._segments]  # type: ignore[attr-defined]


def test_segments_older_than_retention_ms_are_deleted(storage: Storage) -> None:
    log = storage.log(segment_bytes=600, retention_ms=1000 + INTERVAL_MS)
    fill(log, 12, step_ms=100)
    assert segment_bases(log) == [0, 3, 6, 9]
    retain(storage, NOW + INTERVAL_MS + 1200 + 1)
    assert log.log_start_offset == 3
    assert [record.offset for record in read_all(log)] == list(range(3, 12))
    with pytest.raises(Exception, match="offset 2"):
        read(log, 2)


def test_a_segment_lives_as_long_as_its_newest_record(storage: Storage) -> None:
    log = storage.log(segment_bytes=600, retention_ms=1000 + INTERVAL_MS)
    for shift in (0, 5000, 0, 0):
        log.append_as_leader(batch("x" * 100, timestamp=NOW + shift), NOW)
    retain(storage, NOW + INTERVAL_MS + 2000)
    assert log.log_start_offset == 0


def test_the_active_segment_is_rolled_and_deleted_when_it_is_too_old(storage: Storage) -> None:
    log = storage.log(retention_ms=1000)
    fill(log, 3)
    retain(storage, NOW + INTERVAL_MS)
    assert (log.log_start_offset, log.log_end_offset, log.size_bytes) == (3, 3, 0)
    assert read_all(log) == []
    log.append_as_leader(batch(timestamp=NOW), NOW)
    assert [record.offset for record in read_all(log)] == [3]


def test_the_oldest_segments_above_retention_bytes_are_deleted(storage: Storage) -> None:
    log = storage.log(segment_bytes=600, retention_bytes=1000, retention_ms=-1)
    fill(log, 12)
    segment_size = log.size_bytes // 4
    assert log.size_bytes > 1000 + segment_size
    retain(storage, NOW + INTERVAL_MS)
    assert 1000 <= log.size_bytes < 1000 + segment_size
    assert log.log_start_offset == segment_bases(log)[0] > 0


def test_without_limits_nothing_is_deleted(storage: Storage) -> None:
    log = storage.log(segment_bytes=600, retention_ms=-1)
    fill(log, 12)
    retain(storage, NOW * 2)
    assert log.log_start_offset == 0


def test_a_compacted_topic_deletes_only_below_the_log_start(storage: Storage) -> None:
    log = storage.log(
        segment_bytes=600,
        retention_ms=1,
        retention_bytes=1,
        cleanup_policy=frozenset(("compact",)),
        min_cleanable_dirty_ratio=1.0,
    )
    fill(log, 12)
    retain(storage, NOW + INTERVAL_MS)
    assert log.log_start_offset == 0
    log.delete_records_before(7)
    retain(storage, NOW + 3 * INTERVAL_MS)
    assert segment_bases(log) == [6, 9]
    assert log.log_start_offset == 7


def test_segments_below_the_log_start_are_deleted(storage: Storage) -> None:
    log = storage.log(segment_bytes=600, retention_ms=-1)
    fill(log, 12)
    log.delete_records_before(6)
    retain(storage, NOW + INTERVAL_MS)
    assert segment_bases(log) == [6, 9]


def test_without_timestamps_the_time_of_the_last_change_counts(storage: Storage) -> None:
    log = storage.log(retention_ms=1000)
    log.append_as_leader(batch(timestamp=-1), NOW)
    retain(storage, NOW * 10)
    assert log.log_start_offset == 1


def test_watchers_hear_of_the_log_start(storage: Storage) -> None:
    log = storage.log(retention_ms=1000)
    fill(log, 3)
    seen: list[int] = []
    log.watch(lambda: seen.append(log.log_start_offset))
    retain(storage, NOW + INTERVAL_MS)
    assert seen[-1] == 3


# files


def names_in(storage: Storage) -> list[str]:
    return sorted(os.listdir(f"{storage.path}/topic-0"))


def test_deleted_segments_are_renamed_first_and_removed_later(file_storage: Storage) -> None:
    log = file_storage.log(segment_bytes=600, retention_ms=1000, file_delete_delay_ms=60_000)
    fill(log, 6)
    retain(file_storage, NOW + INTERVAL_MS)
    assert "00000000000000000000.log.deleted" in names_in(file_storage)
    assert "00000000000000000003.log.deleted" in names_in(file_storage)
    file_storage.directory.tick(NOW + INTERVAL_MS + 61_000)
    assert not [name for name in names_in(file_storage) if name.endswith(".deleted")]


def test_a_reader_that_holds_a_slice_finishes(file_storage: Storage) -> None:
    log = file_storage.log(segment_bytes=600, retention_ms=1000, file_delete_delay_ms=0)
    fill(log, 6)
    held = read(log, 0)
    before = bytes(held.buffers[0])
    retain(file_storage, NOW + INTERVAL_MS)
    assert bytes(held.buffers[0]) == before


def test_retention_reaches_partitions_that_nobody_asked_for(file_storage: Storage) -> None:
    log = file_storage.log(segment_bytes=600, retention_ms=1000)
    fill(log, 6)
    config = log.config
    file_storage.reopen()
    file_storage.directory.config_source = lambda topic: config if topic == "topic" else None
    retain(file_storage, NOW + INTERVAL_MS)
    assert file_storage.directory.offsets("topic", 0) == (6, 6)
    assert file_storage.directory._logs == {}  # type: ignore[attr-defined]
    assert file_storage.log().log_start_offset == 6


def test_a_partition_of_an_unknown_topic_is_left_alone(file_storage: Storage) -> None:
    fill(file_storage.log(segment_bytes=600, retention_ms=1000), 6)
    file_storage.reopen()
    file_storage.directory.config_source = lambda topic: None
    retain(file_storage, NOW + INTERVAL_MS)
    assert file_storage.directory.offsets("topic", 0) == (0, 6)


def test_the_log_start_survives_a_crash_once_it_was_checkpointed(file_storage: Storage) -> None:
    log = file_storage.log()
    fill(log, 6)
    log.delete_records_before(4)
    assert file_storage.directory.next_deadline() <= NOW
    file_storage.directory.tick(NOW)
    file_storage.crash()
    assert file_storage.log().log_start_offset == 4
