"""Appending, on logs of both kinds."""

from __future__ import annotations

import pytest

from kbroker.protocol.records import (
    CREATE_TIME,
    CorruptRecord,
    InvalidRecord,
    Record,
    UnsupportedCompression,
    build_batch,
    compression,
    iter_spans,
    payload_of,
    read_header,
)
from kbroker.protocol.records.batch import assemble_batch
from kbroker.protocol.records.errors import RecordError
from kbroker.storage.errors import InvalidTimestamp, RecordListTooLarge, RecordTooLarge
from kbroker.storage.interface import Log

from .support import NOW, Storage, batch, contents, read, read_all, records_in

HOUR_MS = 3_600_000


def test_batches_get_consecutive_offsets(log: Log) -> None:
    first = log.append_as_leader(batch("a", "b", "c"), NOW)
    second = log.append_as_leader(batch("d"), NOW)
    assert (first.base_offset, first.last_offset) == (0, 2)
    assert (second.base_offset, second.last_offset) == (3, 3)
    assert first.durable is None
    assert contents(log) == [(0, "a"), (1, "b"), (2, "c"), (3, "d")]
    assert (log.log_start_offset, log.last_stable_offset, log.high_watermark, log.log_end_offset) == (
        0,
        4,
        4,
        4,
    )


def test_an_appended_batch_carries_its_offset_and_the_leader_epoch(storage: Storage) -> None:
    log = storage.log(leader_epoch=5)
    log.append_as_leader(batch(count=2), NOW)
    log.append_as_leader(batch(), NOW)
    found = read(log, 2)
    header = read_header(bytes(found.buffers[0]))
    assert (header.base_offset, header.partition_leader_epoch) == (2, 5)


def test_the_log_keeps_nothing_of_the_buffer_it_was_given(log: Log) -> None:
    buffer = batch("kept")
    log.append_as_leader(buffer, NOW)
    buffer[:] = bytes(len(buffer))
    assert contents(log) == [(0, "kept")]


def test_a_batch_with_a_flipped_bit_is_corrupt_and_leaves_no_trace(log: Log) -> None:
    damaged = batch("x")
    damaged[-1] ^= 1
    with pytest.raises(CorruptRecord):
        log.append_as_leader(damaged, NOW)
    assert log.log_end_offset == 0
    assert log.append_as_leader(batch("good"), NOW).base_offset == 0


def test_two_batches_of_a_client_are_refused(log: Log) -> None:
    with pytest.raises(InvalidRecord):
        log.append_as_leader(memoryview(bytearray(bytes(batch()) + bytes(batch()))), NOW)


def test_a_client_batch_starts_at_base_offset_zero(log: Log) -> None:
    with pytest.raises(InvalidRecord):
        log.append_as_leader(batch(base_offset=3), NOW)


def test_no_batch_at_all_is_refused(log: Log) -> None:
    with pytest.raises((InvalidRecord, CorruptRecord)):
        log.append_as_leader(memoryview(bytearray()), NOW)


def test_a_control_batch_of_a_client_is_refused(log: Log) -> None:
    with pytest.raises(InvalidRecord):
        log.append_as_leader(batch(control=True, transactional=True), NOW)


def test_a_batch_above_max_message_bytes_is_too_large(storage: Storage) -> None:
    log = storage.log(max_message_bytes=200)
    log.append_as_leader(batch("x" * 50), NOW)
    with pytest.raises(RecordTooLarge):
        log.append_as_leader(batch("x" * 200), NOW)


def test_a_batch_above_segment_bytes_fits_into_no_segment(storage: Storage) -> None:
    log = storage.log(segment_bytes=200)
    with pytest.raises(RecordListTooLarge):
        log.append_as_leader(batch("x" * 200), NOW)
    assert log.log_end_offset == 0


def test_a_create_time_too_far_ahead_is_refused(storage: Storage) -> None:
    log = storage.log(message_timestamp_after_max_ms=HOUR_MS)
    log.append_as_leader(batch(timestamp=NOW + HOUR_MS), NOW)
    with pytest.raises(InvalidTimestamp):
        log.append_as_leader(batch(timestamp=NOW + HOUR_MS + 1), NOW)


def test_a_create_time_too_far_back_is_refused(storage: Storage) -> None:
    log = storage.log(message_timestamp_before_max_ms=HOUR_MS)
    log.append_as_leader(batch(timestamp=NOW - HOUR_MS), NOW)
    log.append_as_leader(batch(timestamp=-1), NOW)  # without a timestamp, nothing is too old
    with pytest.raises(InvalidTimestamp):
        log.append_as_leader(batch(timestamp=NOW - HOUR_MS - 1), NOW)


def test_one_old_record_among_new_ones_is_refused(storage: Storage) -> None:
    log = storage.log(message_timestamp_before_max_ms=HOUR_MS)
    mixed = build_batch([Record(NOW, b"k", b"v"), Record(NOW - 2 * HOUR_MS, b"k", b"v")])
    with pytest.raises(InvalidTimestamp):
        log.append_as_leader(memoryview(bytearray(mixed)), NOW)


def test_log_append_time_replaces_the_producers_timestamps(storage: Storage) -> None:
    log = storage.log(message_timestamp_type="LogAppendTime", message_timestamp_before_max_ms=HOUR_MS)
    appended = log.append_as_leader(batch("a", "b", timestamp=5), NOW)
    assert appended.log_append_time_ms == NOW
    assert {record.timestamp for record in read_all(log)} == {NOW}


def test_a_producer_does_not_set_log_append_time(storage: Storage) -> None:
    log = storage.log(message_timestamp_type="LogAppendTime")
    with pytest.raises(InvalidTimestamp):
        log.append_as_leader(batch(log_append_time_ms=NOW), NOW)


def test_a_log_append_time_on_a_create_time_topic_becomes_a_create_time(storage: Storage) -> None:
    log = storage.log()
    log.append_as_leader(batch(log_append_time_ms=NOW), NOW)
    header = read_header(bytes(read(log, 0).buffers[0]))
    assert (header.timestamp_type, header.max_timestamp) == (CREATE_TIME, NOW)


@pytest.mark.parametrize("codec", ["gzip", "snappy", "lz4", "zstd", "uncompressed"])
@pytest.mark.parametrize("source", [compression.NONE, compression.GZIP])
def test_the_topics_compression_type_wins(storage: Storage, codec: str, source: int) -> None:
    log = storage.log(compression_type=codec)
    values = [f"value {index}" * 10 for index in range(20)]
    log.append_as_leader(batch(*values, codec=source), NOW)
    found = read(log, 0)
    stored = read_header(bytes(found.buffers[0]))
    expected = 0 if codec == "uncompressed" else compression.CODEC_NAMES.index(codec)
    assert stored.codec == expected
    assert [record.value.decode() for record in records_in(found) if record.value] == values


def test_compression_type_producer_keeps_the_batch_as_it_came(log: Log) -> None:
    sent = batch("x" * 100, codec=compression.GZIP)
    original = bytes(sent)
    log.append_as_leader(sent, NOW)
    stored = bytes(read(log, 0).buffers[0])
    assert stored[17:] == original[17:]


def test_what_recompression_makes_too_large_is_refused(storage: Storage) -> None:
    log = storage.log(compression_type="uncompressed", max_message_bytes=1000)
    with pytest.raises(RecordTooLarge):
        log.append_as_leader(batch("x" * 5000, codec=compression.GZIP), NOW)
    assert log.log_end_offset == 0


def test_an_unknown_codec_is_refused(log: Log) -> None:
    from kbroker.protocol.records import BatchHeader
    from kbroker.protocol.records.batch import assemble_batch

    header: BatchHeader = read_header(bytes(batch()))
    strange = assemble_batch(header._replace(attributes=5), bytes(batch())[61:])
    with pytest.raises(UnsupportedCompression):
        log.append_as_leader(memoryview(bytearray(strange)), NOW)


@pytest.mark.parametrize("codec", [compression.NONE, compression.ZSTD])
def test_a_compacted_topic_takes_no_record_without_a_key(storage: Storage, codec: int) -> None:
    log = storage.log(cleanup_policy=frozenset(("compact",)))
    log.append_as_leader(batch("a", codec=codec), NOW)
    with pytest.raises(InvalidRecord) as error:
        log.append_as_leader(batch("a", "b", key=None, codec=codec), NOW)
    assert error.value.indexes == (0, 1)
    assert log.log_end_offset == 1


def test_a_changed_config_holds_from_the_next_append_on(storage: Storage) -> None:
    log = storage.log()
    log.append_as_leader(batch("x" * 300), NOW)
    same = storage.log(max_message_bytes=100)
    assert same is log
    with pytest.raises(RecordTooLarge):
        log.append_as_leader(batch("x" * 300), NOW)


def test_watchers_hear_of_every_append_until_they_stop(log: Log) -> None:
    seen: list[int] = []
    unwatch = log.watch(lambda: seen.append(log.high_watermark))
    log.append_as_leader(batch(count=2), NOW)
    log.append_as_leader(batch(), NOW)
    unwatch()
    unwatch()
    log.append_as_leader(batch(), NOW)
    assert seen == [2, 3]


def test_a_watcher_may_stop_watching_while_it_is_called(log: Log) -> None:
    seen: list[str] = []
    unwatch = log.watch(lambda: (seen.append("first"), unwatch()))  # type: ignore[func-returns-value]
    log.watch(lambda: seen.append("second"))
    log.append_as_leader(batch(), NOW)
    log.append_as_leader(batch(), NOW)
    assert seen == ["first", "second", "second"]


def test_segments_roll_by_size(storage: Storage) -> None:
    log = storage.log(segment_bytes=1000)
    for index in range(20):
        log.append_as_leader(batch(f"{index:0200d}"), NOW)
    assert len(log._segments) == 7  # type: ignore[attr-defined]
    assert [int(value) for _, value in contents(log)] == list(range(20))


def test_segments_roll_by_the_time_in_their_records(storage: Storage) -> None:
    log = storage.log(segment_ms=1000)
    for timestamp in (0, 1000, 1001, 1500, 2002):
        log.append_as_leader(batch(timestamp=NOW + timestamp), NOW)
    assert [segment.base_offset for segment in log._segments] == [0, 2, 4]  # type: ignore[attr-defined]


def test_without_timestamps_segments_roll_by_the_clock(storage: Storage) -> None:
    log = storage.log(segment_ms=1000)
    for now_ms in (NOW, NOW + 1000, NOW + 1001):
        log.append_as_leader(batch(timestamp=-1), now_ms)
    assert [segment.base_offset for segment in log._segments] == [0, 2]  # type: ignore[attr-defined]


def test_a_segment_spans_no_more_offsets_than_an_index_can_say(storage: Storage) -> None:
    from kbroker.protocol.records import build_empty_batch

    log = storage.log()
    header = read_header(bytes(batch()))
    sparse = memoryview(bytearray(build_empty_batch(header._replace(last_offset_delta=2**31 - 2))))
    log.append_as_leader(batch(), NOW)
    log._append_checked(sparse, read_header(sparse), NOW)  # type: ignore[attr-defined]
    log.append_as_leader(batch("behind"), NOW)
    assert log.log_end_offset == 2**31 + 1
    assert [segment.base_offset for segment in log._segments] == [0, 2**31]  # type: ignore[attr-defined]
    assert contents(log, offset=2**31) == [(2**31, "behind")]


def test_append_after_close_is_refused(storage: Storage) -> None:
    from kbroker.storage.errors import StorageError

    log = storage.log()
    log.append_as_leader(batch(), NOW)
    log.close()
    with pytest.raises(StorageError):
        log.append_as_leader(batch(), NOW)


def test_what_is_inside_a_batch_is_checked_where_the_broker_is_told_to(storage: Storage) -> None:
    whole = build_batch([Record(NOW, None, b"a"), Record(NOW, None, b"b")])
    # The records say they are fewer than the header counts; the checksum is right.
    nonsense = memoryview(bytearray(assemble_batch(read_header(whole), whole[61:-4])))
    assert storage.log("trusting").append_as_leader(memoryview(bytearray(nonsense)), NOW).base_offset == 0
    with pytest.raises(RecordError):
        storage.log("checking", validate_records=True).append_as_leader(nonsense, NOW)


def test_the_offset_deltas_of_a_checked_batch_run_from_zero(storage: Storage) -> None:
    log = storage.log(validate_records=True)
    whole = build_batch([Record(NOW, None, value) for value in (b"a", b"b", b"c")])
    header = read_header(whole)
    payload = payload_of(whole, header)
    first, second, third = (payload[span.start : span.end] for span in iter_spans(payload, header))
    log.append_as_leader(memoryview(bytearray(whole)), NOW)
    for shuffled, wrong in ((second + first + third, 0), (first + first + third, 1)):
        with pytest.raises(InvalidRecord) as caught:
            log.append_as_leader(memoryview(bytearray(assemble_batch(header, shuffled))), NOW)
        assert caught.value.indexes == (wrong,)


def test_segments_roll_when_their_indexes_are_full(file_storage: Storage) -> None:
    log = file_storage.log(segment_index_bytes=60, index_interval_bytes=0)
    for index in range(30):
        log.append_as_leader(batch(f"{index}", timestamp=NOW + index), NOW)
    sizes = [
        (segment.index.size_bytes, segment.time_index.size_bytes)
        for segment in log._segments  # type: ignore[attr-defined]
    ]
    assert len(sizes) > 5
    assert all(index <= 60 and time_index <= 60 for index, time_index in sizes)
    assert [int(value) for _, value in contents(log)] == list(range(30))
