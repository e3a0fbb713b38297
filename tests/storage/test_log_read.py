"""Reading, on logs of both kinds."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kbroker.protocol.records import iter_batches
from kbroker.storage.errors import OffsetOutOfRange
from kbroker.storage.interface import Log, TimestampOffset

from .support import NOW, Storage, batch, contents, now_or, read, read_all, records_in, storage_settings


def fill(log: Log, sizes: list[int]) -> None:
    """One batch per number: of so many records."""
    for size in sizes:
        start = log.log_end_offset
        log.append_as_leader(batch(*(f"{start + index}" for index in range(size))), NOW)


def test_a_read_at_the_log_end_is_empty(log: Log) -> None:
    assert read(log, 0).size_bytes == 0
    fill(log, [3])
    found = read(log, 3)
    assert (found.size_bytes, list(found.buffers), found.next_offset) == (0, [], 3)
    assert (found.high_watermark, found.last_stable_offset, found.log_start_offset) == (3, 3, 0)


@pytest.mark.parametrize("offset", [-1, 4])
def test_a_read_outside_the_log_is_out_of_range(log: Log, offset: int) -> None:
    fill(log, [3])
    with pytest.raises(OffsetOutOfRange):
        log.read(offset, 100)


def test_a_read_within_a_batch_returns_that_whole_batch(log: Log) -> None:
    fill(log, [3, 3])
    found = read(log, 4)
    assert [record.offset for record in records_in(found)] == [3, 4, 5]
    assert found.next_offset == 6


def test_only_whole_batches_within_max_bytes_are_returned(log: Log) -> None:
    fill(log, [1] * 10)
    size = read(log, 0, 1).size_bytes
    assert read(log, 0, 3 * size).next_offset == 3
    assert read(log, 0, 3 * size + size - 1).next_offset == 3
    assert read(log, 2, 4 * size).next_offset == 6


def test_the_first_batch_is_returned_even_if_it_is_too_large(log: Log) -> None:
    log.append_as_leader(batch("x" * 10_000), NOW)
    log.append_as_leader(batch("y"), NOW)
    found = read(log, 0, 100)
    assert (found.next_offset, found.size_bytes > 10_000) == (1, True)


def test_without_min_one_a_too_large_batch_is_not_returned(log: Log) -> None:
    log.append_as_leader(batch("x" * 10_000), NOW)
    found = read(log, 0, 100, min_one=False)
    assert (found.size_bytes, found.next_offset) == (0, 0)


def test_reading_goes_on_from_segment_to_segment(storage: Storage) -> None:
    log = storage.log(segment_bytes=500)
    fill(log, [2] * 40)
    assert [offset for offset, _ in contents(log)] == list(range(80))
    for offset in range(80):
        assert records_in(read(log, offset))[0].offset == offset - offset % 2


@given(
    sizes=st.lists(st.integers(1, 5), min_size=1, max_size=60),
    segment_bytes=st.integers(300, 4000),
    interval=st.sampled_from([0, 100, 4096]),
    reads=st.lists(st.tuples(st.integers(0, 300), st.integers(0, 3000)), max_size=30),
)
@storage_settings(30)
def test_every_read_returns_whole_batches_from_the_right_one_on(
    tmp_path_factory: pytest.TempPathFactory,
    sizes: list[int],
    segment_bytes: int,
    interval: int,
    reads: list[tuple[int, int]],
) -> None:
    storage = Storage(tmp_path_factory.mktemp("read"))
    log = storage.log(segment_bytes=segment_bytes, index_interval_bytes=interval)
    fill(log, sizes)
    for _ in range(2):
        for offset, max_bytes in reads:
            if offset >= log.log_end_offset:
                continue
            found = read(log, offset, max_bytes)
            data = bytes(found.buffers[0])
            headers = [header for _, header in iter_batches(data)]
            assert headers[0].base_offset <= offset <= headers[0].last_offset
            assert [h.base_offset for h in headers[1:]] == [h.next_offset for h in headers[:-1]]
            assert headers[-1].next_offset == found.next_offset
            assert len(data) <= max_bytes or len(headers) == 1
        storage.reopen()
        log = storage.log(segment_bytes=segment_bytes, index_interval_bytes=interval)
    storage.directory.close()


def test_many_small_batches_are_cut_by_the_index(file_storage: Storage) -> None:
    log = file_storage.log(index_interval_bytes=1000)
    fill(log, [1] * 5000)
    found = read(log, 3, 200_000)
    headers = [header for _, header in iter_batches(bytes(found.buffers[0]))]
    assert headers[0].base_offset == 3
    assert headers[-1].next_offset == found.next_offset
    size = headers[-1].size_bytes
    assert 200_000 - size < found.size_bytes <= 200_000
    assert [record.offset for record in read_all(log, max_bytes=200_000)] == list(range(5000))


# timestamps


def test_a_timestamp_finds_the_first_record_at_or_after_it(storage: Storage) -> None:
    log = storage.log(segment_bytes=500, index_interval_bytes=100)
    for index in range(50):
        log.append_as_leader(batch(f"{index}", timestamp=NOW + index * 10), NOW + 1000)
    for index in range(50):
        for shift in (-9, 0):
            expected = TimestampOffset(NOW + index * 10, index, 0)
            assert now_or(log.offset_for_timestamp(NOW + index * 10 + shift)) == expected
    assert now_or(log.offset_for_timestamp(NOW + 491)) is None
    assert now_or(log.offset_for_timestamp(0)).offset == 0


def test_timestamps_out_of_order_find_the_first_offset_not_the_smallest_time(storage: Storage) -> None:
    log = storage.log(index_interval_bytes=100)
    for shift in (50, 10, 40, 60, 20):
        log.append_as_leader(batch("x" * 90, timestamp=NOW + shift), NOW)
    assert now_or(log.offset_for_timestamp(NOW + 15)).offset == 0
    assert now_or(log.offset_for_timestamp(NOW + 51)).offset == 3


def test_a_timestamp_search_starts_at_the_log_start(log: Log) -> None:
    for index in range(10):
        log.append_as_leader(batch(timestamp=NOW + index), NOW)
    log.delete_records_before(4)
    assert now_or(log.offset_for_timestamp(NOW)).offset == 4


def test_the_largest_timestamp_is_found_where_it_first_stands(storage: Storage) -> None:
    log = storage.log(segment_bytes=300)
    assert now_or(log.max_timestamp_offset()) is None
    for shift in (1, 9, 3, 9, 2):
        log.append_as_leader(batch("x" * 90, timestamp=NOW + shift), NOW)
    assert now_or(log.max_timestamp_offset()) == TimestampOffset(NOW + 9, 1, 0)


def test_a_log_without_timestamps_finds_none(log: Log) -> None:
    log.append_as_leader(batch(timestamp=-1), NOW)
    assert now_or(log.max_timestamp_offset()) is None
    assert now_or(log.offset_for_timestamp(5)) is None


# leader epochs


def test_the_end_of_an_epoch_is_where_the_next_begins(storage: Storage) -> None:
    log = storage.log(leader_epoch=1)
    fill(log, [3])
    storage.log(leader_epoch=4)
    fill(log, [2])
    assert log.latest_epoch == 4
    assert log.end_offset_for_epoch(1) == (1, 3)
    assert log.end_offset_for_epoch(2) == (1, 3)
    assert log.end_offset_for_epoch(4) == (4, 5)
    assert log.end_offset_for_epoch(5) == (-1, -1)
    assert log.end_offset_for_epoch(0) == (0, 0)
    assert log.end_offset_for_epoch(-1) == (-1, -1)


def test_the_leader_epoch_never_falls(storage: Storage) -> None:
    log = storage.log(leader_epoch=4)
    storage.log(leader_epoch=2)
    assert log.leader_epoch == 4


# cutting


def test_delete_records_moves_the_log_start(log: Log) -> None:
    fill(log, [3, 3])
    assert log.delete_records_before(4) == 4
    assert log.delete_records_before(2) == 4
    assert [record.offset for record in read_all(log)] == [4, 5]
    with pytest.raises(OffsetOutOfRange):
        log.read(3, 100)
    for offset in (7, -1):
        with pytest.raises(OffsetOutOfRange):
            log.delete_records_before(offset)


def test_all_records_may_be_deleted(log: Log) -> None:
    fill(log, [3])
    assert log.delete_records_before(3) == 3
    assert read_all(log) == []
    fill(log, [1])
    assert contents(log) == [(3, "3")]
