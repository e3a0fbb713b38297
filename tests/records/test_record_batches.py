"""Reading, checking and patching a batch through its header."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kbroker.protocol.records import (
    BATCH_OVERHEAD,
    CREATE_TIME,
    LOG_APPEND_TIME,
    NO_SEQUENCE,
    BatchHeader,
    CorruptRecord,
    InvalidRecord,
    Record,
    UnsupportedCompression,
    assign_offsets,
    batch_size_at,
    build_batch,
    check_crc,
    compression,
    increment_sequence,
    iter_batches,
    iter_records,
    magic_at,
    read_header,
    stamp_append_time,
    stamp_create_time,
    validate_batch,
    validate_stored_batch,
)
from kbroker.protocol.records.batch import assemble_batch
from tests.records.record_strategies import CODECS, at_offsets, record_lists

RECORDS = [Record(1000, b"a", b"1"), Record(1002, b"b", b"2"), Record(1001, None, None)]


def batch_with(**fields: int) -> bytes:
    """A batch with a right checksum and these header fields."""
    batch = build_batch(RECORDS)
    return assemble_batch(read_header(batch)._replace(**fields), batch[BATCH_OVERHEAD:])


def test_the_header_tells_what_the_batch_was_built_with() -> None:
    batch = build_batch(
        RECORDS,
        base_offset=50,
        codec=compression.LZ4,
        producer_id=7,
        producer_epoch=3,
        base_sequence=11,
        leader_epoch=5,
        transactional=True,
    )
    header = read_header(batch)
    assert header.base_offset == 50
    assert header.last_offset == 52
    assert header.next_offset == 53
    assert header.size_bytes == len(batch) == batch_size_at(batch, 0)
    assert header.partition_leader_epoch == 5
    assert header.magic == magic_at(batch) == 2
    assert header.codec == compression.LZ4
    assert header.timestamp_type == CREATE_TIME
    assert (header.base_timestamp, header.max_timestamp) == (1000, 1002)
    assert (header.producer_id, header.producer_epoch) == (7, 3)
    assert header.has_producer_id
    assert (header.base_sequence, header.last_sequence) == (11, 13)
    assert header.is_transactional
    assert not header.is_control
    assert header.delete_horizon_ms is None
    assert header.record_count == 3


def test_a_batch_without_a_producer_has_no_sequence() -> None:
    header = read_header(build_batch(RECORDS))
    assert not header.has_producer_id
    assert header.last_sequence == NO_SEQUENCE


def test_sequence_numbers_go_on_at_zero_after_the_largest() -> None:
    assert increment_sequence(5, 3) == 8
    assert increment_sequence(2**31 - 1, 0) == 2**31 - 1
    assert increment_sequence(2**31 - 1, 1) == 0
    assert increment_sequence(2**31 - 2, 5) == 3


def test_the_delete_horizon_stands_in_the_base_timestamp() -> None:
    assert read_header(batch_with(attributes=0x40, base_timestamp=99)).delete_horizon_ms == 99


@pytest.mark.parametrize("codec", CODECS)
def test_a_built_batch_is_valid(codec: int) -> None:
    batch = build_batch(RECORDS, codec=codec)
    assert validate_batch(batch) == read_header(batch)
    assert check_crc(batch, 0, len(batch))


def test_a_batch_is_found_and_checked_at_a_position() -> None:
    batch = build_batch(RECORDS, base_offset=4)
    assert validate_batch(b"before" + batch + b"behind", 6).base_offset == 4
    assert check_crc(b"before" + batch + b"behind", 6, len(batch))


@given(st.data())
def test_any_flipped_bit_behind_the_leader_epoch_is_noticed(data: st.DataObject) -> None:
    batch = bytearray(build_batch(RECORDS))
    position = data.draw(st.sampled_from([*range(8, 12), *range(16, len(batch))]))
    batch[position] ^= 1 << data.draw(st.integers(0, 7))
    with pytest.raises((CorruptRecord, InvalidRecord)):
        validate_batch(batch)


@pytest.mark.parametrize("size", [0, 1, 11, 12, 16, 17, 60, 61, -1])
def test_a_truncated_batch_is_corrupt(size: int) -> None:
    batch = build_batch(RECORDS)[:size]
    with pytest.raises(CorruptRecord):
        validate_batch(batch)
    assert not check_crc(batch, 0, 100)


@pytest.mark.parametrize("length", [-(2**31), -1, 0, 48, 2**31 - 1])
def test_an_impossible_batch_length_is_corrupt(length: int) -> None:
    batch = bytearray(build_batch(RECORDS))
    struct.pack_into(">i", batch, 8, length)
    with pytest.raises(CorruptRecord):
        validate_batch(batch)
    with pytest.raises(CorruptRecord):
        list(iter_batches(batch))
    with pytest.raises(CorruptRecord):
        iter_records(batch)


@pytest.mark.parametrize("magic", [0, 1])
def test_an_old_format_is_invalid_where_a_batch_is_due(magic: int) -> None:
    batch = bytearray(batch_with(magic=magic))
    with pytest.raises(InvalidRecord):
        validate_batch(batch)
    with pytest.raises(InvalidRecord):
        validate_batch(batch[:30])
    with pytest.raises(InvalidRecord):
        iter_records(batch)


def test_an_unknown_magic_is_corrupt() -> None:
    for magic in (3, 127, -1):
        with pytest.raises(CorruptRecord):
            validate_batch(batch_with(magic=magic))


def test_sizes_and_magic_of_too_few_bytes_are_corrupt() -> None:
    for read in (
        lambda: batch_size_at(b"\0" * 11, 0),
        lambda: magic_at(b"\0" * 16),
        lambda: read_header(b""),
    ):
        with pytest.raises(CorruptRecord):
            read()


@pytest.mark.parametrize(
    "fields",
    [
        {"record_count": 0, "last_offset_delta": -1},
        {"record_count": -1, "last_offset_delta": -2},
        {"record_count": 0, "last_offset_delta": 0},
        {"record_count": 2},
        {"last_offset_delta": 3},
        {"last_offset_delta": -1},
        {"attributes": 0x20},
        {"attributes": 0x30, "producer_id": 1, "producer_epoch": 0, "base_sequence": 0},
        {"producer_id": 1, "producer_epoch": 0, "base_sequence": -1},
    ],
)
def test_what_a_client_may_not_send_is_invalid(fields: dict[str, int]) -> None:
    with pytest.raises(InvalidRecord):
        validate_batch(batch_with(**fields))


@pytest.mark.parametrize("codec", [5, 6, 7])
def test_an_unknown_codec_is_unsupported(codec: int) -> None:
    with pytest.raises(UnsupportedCompression):
        validate_batch(batch_with(attributes=codec))
    with pytest.raises(UnsupportedCompression):
        iter_records(batch_with(attributes=codec))


def test_a_stored_batch_may_have_lost_records_or_be_a_control_batch() -> None:
    for fields in ({"last_offset_delta": 9}, {"record_count": 0}, {"attributes": 0x30}):
        assert validate_stored_batch(batch_with(**fields))
    with pytest.raises(InvalidRecord):
        validate_stored_batch(batch_with(record_count=-1))


@pytest.mark.parametrize("codec", CODECS)
def test_assigning_offsets_in_place_leaves_the_batch_valid(codec: int) -> None:
    buffer = bytearray(b"xx" + build_batch(RECORDS, codec=codec) + b"yy")
    assign_offsets(memoryview(buffer), 2**40, 17, 2)
    header = validate_batch(buffer, 2)
    assert (header.base_offset, header.partition_leader_epoch) == (2**40, 17)
    assert [record.offset for record in iter_records(buffer[2:-2])] == [2**40, 2**40 + 1, 2**40 + 2]
    assert (buffer[:2], buffer[-2:]) == (b"xx", b"yy")


@pytest.mark.parametrize("codec", CODECS)
def test_stamping_the_append_time_changes_every_timestamp(codec: int) -> None:
    buffer = bytearray(b"xx" + build_batch(RECORDS, codec=codec) + b"yy")
    stamp_append_time(memoryview(buffer), 5000, 2)
    header = validate_batch(buffer, 2)
    assert (header.timestamp_type, header.max_timestamp, header.codec) == (LOG_APPEND_TIME, 5000, codec)
    assert [record.timestamp for record in iter_records(buffer[2:-2])] == [5000] * 3
    stamp_create_time(buffer, 1002, 2)
    assert bytes(buffer[2:-2]) == build_batch(RECORDS, codec=codec)
    assert (buffer[:2], buffer[-2:]) == (b"xx", b"yy")


@given(st.lists(record_lists, max_size=4))
def test_iterating_over_batches_finds_each_with_its_records(lists: list[list[Record]]) -> None:
    batches = [build_batch(records, base_offset=100 * n) for n, records in enumerate(lists)]
    found: list[tuple[int, BatchHeader]] = list(iter_batches(b"".join(batches)))
    assert [header.size_bytes for _, header in found] == [len(batch) for batch in batches]
    for n, (position, header) in enumerate(found):
        batch = b"".join(batches)[position : position + header.size_bytes]
        assert list(iter_records(batch)) == at_offsets(lists[n], 100 * n)


def test_iterating_over_batches_stops_at_a_torn_one() -> None:
    batch = build_batch(RECORDS)
    for tail in (b"\0", batch[:60], batch[:-1]):
        walk = iter_batches(batch + tail)
        assert next(walk)[0] == 0
        with pytest.raises(CorruptRecord):
            next(walk)
