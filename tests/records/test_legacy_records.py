"""Message formats 0 and 1: reading, and conversion up and down."""

from __future__ import annotations

import struct
import zlib

import pytest
from aiokafka.record.legacy_records import LegacyRecordBatch as AiokafkaBatch
from hypothesis import given
from hypothesis import strategies as st
from kafka.record.legacy_records import LegacyRecordBatchBuilder
from kafka.record.memory_records import MemoryRecords

from kbroker.protocol.records import (
    NO_TIMESTAMP,
    ControlType,
    CorruptRecord,
    DecompressedTooLarge,
    InvalidRecord,
    Record,
    RecordError,
    UnsupportedCompression,
    build_batch,
    build_control_batch,
    compression,
    iter_records,
    read_header,
    stamp_append_time,
    validate_batch,
)
from kbroker.protocol.records.legacy import (
    build_message_set,
    down_convert,
    iter_message_set,
    iter_messages,
    up_convert,
)
from tests.records.java_records import JavaRecords
from tests.records.record_strategies import LEGACY_CODECS, at_offsets, plain_record_lists, record_lists

RECORDS = at_offsets([Record(1000, b"a", b"1"), Record(1005, None, b"x" * 500), Record(999, b"c", None)])
formats = pytest.mark.parametrize("magic", [0, 1])
codecs = pytest.mark.parametrize("codec", LEGACY_CODECS, ids=compression.CODEC_NAMES[:4])
magics = st.sampled_from([0, 1])
legacy_codecs = st.sampled_from(LEGACY_CODECS)


def as_legacy(records: list[Record], magic: int) -> list[Record]:
    """The records as a message set of this format holds them."""
    return [
        record._replace(headers=(), offset_delta=0, timestamp=record.timestamp if magic else NO_TIMESTAMP)
        for record in records
    ]


def message(magic: int, attributes: int, body: bytes, offset: int = 0) -> bytes:
    """A message with a right size and checksum around key and value."""
    content = struct.pack(">bb", magic, attributes) + (struct.pack(">q", 5) if magic else b"") + body
    return struct.pack(">qiI", offset, len(content) + 4, zlib.crc32(content)) + content


def kafka_python_set(records: list[Record], magic: int, codec: int) -> bytes:
    builder = LegacyRecordBatchBuilder(magic, codec, 1 << 24)
    for record in records:
        builder.append(record.offset, record.timestamp, record.key, record.value)
    return bytes(builder.build())


def read_by_kafka_python(message_set: bytes) -> list[Record]:
    found = []
    for batch in MemoryRecords(message_set):
        assert batch.validate_crc()
        for record in batch:
            timestamp = NO_TIMESTAMP if record.timestamp is None else record.timestamp
            found.append(Record(timestamp, record.key, record.value, (), record.offset))
    return found


@given(plain_record_lists, magics, legacy_codecs, st.integers(0, 2**40))
def test_a_message_set_is_read_as_it_was_built(
    records: list[Record], magic: int, codec: int, base_offset: int
) -> None:
    records = at_offsets(records, base_offset)
    message_set = build_message_set(records, magic, codec=codec)
    assert list(iter_message_set(message_set)) == as_legacy(records, magic)
    assert len(list(iter_messages(message_set))) == (1 if codec else len(records))


@given(plain_record_lists, magics, legacy_codecs)
def test_we_read_what_kafka_python_builds(records: list[Record], magic: int, codec: int) -> None:
    if codec == compression.LZ4 and magic == 0:
        codec = compression.GZIP  # kafka-python needs another library for the old LZ4 frames
    records = at_offsets(records)
    message_set = kafka_python_set(records, magic, codec)
    if codec and magic:
        # kafka-python leaves the wrapper's offset to the broker.
        assert [record[:3] for record in iter_message_set(message_set)] == [record[:3] for record in records]
    else:
        assert list(iter_message_set(message_set)) == as_legacy(records, magic)


@given(record_lists, magics, legacy_codecs, st.integers(0, 2**40))
def test_kafka_python_reads_what_we_convert_down(
    records: list[Record], magic: int, codec: int, base_offset: int
) -> None:
    if codec == compression.LZ4 and magic == 0:
        codec = compression.SNAPPY
    message_set = down_convert(build_batch(records, codec=codec, base_offset=base_offset), magic)
    assert read_by_kafka_python(message_set) == as_legacy(at_offsets(records, base_offset), magic)


def test_aiokafka_reads_what_we_convert_down() -> None:
    for codec in LEGACY_CODECS:
        (found,) = AiokafkaBatch(bytearray(down_convert(build_batch(RECORDS[:1], codec=codec), 1)), 1)
        assert (found.offset, found.timestamp, found.key, found.value) == (0, 1000, b"a", b"1")


@given(plain_record_lists, magics, legacy_codecs)
def test_a_message_set_converts_up_to_one_valid_batch(records: list[Record], magic: int, codec: int) -> None:
    message_set = build_message_set(at_offsets(records, 77), magic, codec=codec)
    batch = up_convert(message_set)
    header = validate_batch(batch)
    expected = at_offsets(as_legacy(records, magic))
    assert list(iter_records(batch)) == expected
    assert header.max_timestamp == max(record.timestamp for record in expected)
    assert (header.codec, header.producer_id) == (codec, -1)


def test_records_without_timestamps_have_none_in_the_batch() -> None:
    header = read_header(up_convert(build_message_set(RECORDS, 0)))
    assert (header.base_timestamp, header.max_timestamp) == (NO_TIMESTAMP, NO_TIMESTAMP)


@formats
@codecs
def test_conversion_down_and_up_again_is_the_same_batch(magic: int, codec: int) -> None:
    batch = build_batch(as_legacy(RECORDS, magic), codec=codec)
    again = up_convert(down_convert(batch, magic))
    assert list(iter_records(again)) == list(iter_records(batch))


@formats
@codecs
def test_a_message_that_is_cut_off_ends_the_set(magic: int, codec: int) -> None:
    whole = build_message_set(RECORDS, magic, codec=codec)
    for size in range(1, len(whole), 7):
        assert list(iter_message_set(whole + whole[:size]))[:3] == as_legacy(RECORDS, magic)
    assert up_convert(whole[:-1] if codec else whole[:20]) == b""
    assert up_convert(b"") == b""


def test_uncompressed_records_before_the_first_offset_are_left_out() -> None:
    plain = build_batch(RECORDS, base_offset=10) + build_batch(RECORDS, base_offset=13)
    assert [record.offset for record in iter_message_set(down_convert(plain, 1, 12))] == [12, 13, 14, 15]
    packed = build_batch(RECORDS, base_offset=10, codec=1)
    assert [record.offset for record in iter_message_set(down_convert(packed, 1, 12))] == [10, 11, 12]
    assert down_convert(plain, 1, 16) == b""


@formats
def test_control_batches_and_emptied_batches_are_left_out(magic: int) -> None:
    marker = build_control_batch(
        ControlType.COMMIT, producer_id=1, producer_epoch=0, coordinator_epoch=0, timestamp=5, base_offset=3
    )
    batches = build_batch(RECORDS) + marker + build_batch(RECORDS, base_offset=4)
    offsets = [record.offset for record in iter_message_set(down_convert(batches, magic))]
    assert offsets == [0, 1, 2, 4, 5, 6]
    assert down_convert(marker, magic) == b""


def test_the_append_time_goes_along_to_format_1() -> None:
    for codec in LEGACY_CODECS:
        batch = bytearray(build_batch(RECORDS, codec=codec))
        stamp_append_time(batch, 4444)
        message_set = down_convert(batch, 1)
        assert [record.timestamp for record in iter_message_set(message_set)] == [4444] * 3
        assert all(found.has_log_append_time for found in iter_messages(message_set))


def test_the_append_time_of_a_wrapper_holds_for_what_is_inside() -> None:
    inner = build_message_set(RECORDS, 1)
    value = compression.compress(1, inner)
    body = struct.pack(">ii", -1, len(value)) + value
    assert [record.timestamp for record in iter_message_set(message(1, 0x09, body, 2))] == [5, 5, 5]
    assert [record.timestamp for record in iter_message_set(message(1, 0x01, body, 2))] == [1000, 1005, 999]


def test_a_wrapper_at_offset_zero_leaves_inner_offsets_alone() -> None:
    value = compression.compress(1, build_message_set(RECORDS, 1))
    body = struct.pack(">ii", -1, len(value)) + value
    assert [record.offset for record in iter_message_set(message(1, 1, body, 0))] == [0, 1, 2]
    assert [record.offset for record in iter_message_set(message(1, 1, body, 12))] == [10, 11, 12]
    with pytest.raises(InvalidRecord):
        list(iter_message_set(message(1, 1, body, 1)))


def test_a_timestamp_that_is_no_int64_cannot_be_converted_down() -> None:
    with pytest.raises(InvalidRecord):
        build_message_set([Record(2**63, None, None)], 1)


@formats
def test_zstd_cannot_be_converted_down(magic: int) -> None:
    with pytest.raises(UnsupportedCompression):
        down_convert(build_batch(RECORDS, codec=4), magic)


@formats
def test_a_wrapper_compressed_by_zstd_is_invalid(magic: int) -> None:
    value = compression.compress(4, build_message_set(RECORDS, magic))
    with pytest.raises(InvalidRecord):
        up_convert(message(magic, 4, struct.pack(">ii", -1, len(value)) + value))


@formats
def test_an_unknown_codec_is_unsupported(magic: int) -> None:
    with pytest.raises(UnsupportedCompression):
        up_convert(message(magic, 6, struct.pack(">iib", -1, 1, 1)))


@formats
def test_a_wrapper_has_messages_inside_that_are_neither_compressed_nor_of_another_format(magic: int) -> None:
    def wrapped(inner: bytes) -> bytes:
        value = compression.compress(1, inner)
        return message(magic, 1, struct.pack(">ii", -1, len(value)) + value, 5)

    for inner in (b"", build_message_set(RECORDS, 1 - magic), build_message_set(RECORDS, magic, codec=2)):
        with pytest.raises(InvalidRecord):
            up_convert(wrapped(inner))
    with pytest.raises(InvalidRecord):
        up_convert(message(magic, 1, struct.pack(">ii", -1, -1)))
    broken = bytearray(build_message_set(RECORDS, magic))
    broken[-5] ^= 1
    with pytest.raises(CorruptRecord):
        up_convert(wrapped(bytes(broken)))


def test_formats_do_not_mix_and_a_wrapper_is_alone() -> None:
    for message_set in (
        build_message_set(RECORDS, 0) + build_message_set(RECORDS, 1),
        build_message_set(RECORDS, 1, codec=1) * 2,
        build_message_set(RECORDS, 1) + build_batch(RECORDS),
    ):
        with pytest.raises(InvalidRecord):
            up_convert(message_set)


@formats
@pytest.mark.parametrize(
    "body", [b"", b"\0\0\0\0", b"\0\0\0\5\0\0\0\1x", b"\0\0\0\0\x7f\xff\xff\xffx", b"\xff" * 9]
)
def test_key_and_value_fill_their_message(magic: int, body: bytes) -> None:
    with pytest.raises(CorruptRecord):
        list(iter_messages(message(magic, 0, body)))


@formats
def test_a_damaged_message_is_corrupt(magic: int) -> None:
    whole = build_message_set(RECORDS[:1], magic)
    for position in range(12, len(whole)):
        damaged = bytearray(whole)
        damaged[position] ^= 0x10
        with pytest.raises(RecordError):
            list(iter_messages(damaged))
    for size in (-1, 0, 13):
        damaged = bytearray(whole)
        struct.pack_into(">i", damaged, 8, size)
        with pytest.raises(CorruptRecord):
            list(iter_messages(damaged))


@formats
@pytest.mark.parametrize("codec", [1, 2, 3])
def test_opening_a_wrapper_is_bounded(magic: int, codec: int) -> None:
    bomb = build_message_set([Record(0, None, bytes(1 << 20))], magic, codec=codec)
    with pytest.raises(DecompressedTooLarge):
        up_convert(bomb, limit=1 << 16)


@given(st.binary(max_size=120))
def test_random_bytes_raise_record_errors_only(data: bytes) -> None:
    for convert in (up_convert, lambda data: down_convert(data, 1)):
        try:
            convert(data)
        except RecordError:
            continue


@given(plain_record_lists, magics, legacy_codecs, st.data())
def test_mutated_message_sets_raise_record_errors_only(
    records: list[Record], magic: int, codec: int, data: st.DataObject
) -> None:
    message_set = bytearray(build_message_set(at_offsets(records), magic, codec=codec))
    message_set[data.draw(st.integers(0, len(message_set) - 1))] = data.draw(st.integers(0, 255))
    size, content = len(message_set) - 12, message_set[16:]
    if data.draw(st.booleans()):  # past the checksum
        struct.pack_into(">iI", message_set, 8, size, zlib.crc32(content))
    try:
        up_convert(message_set, limit=1 << 22)
    except RecordError:
        return


@pytest.mark.java
@formats
def test_uncompressed_messages_are_byte_for_byte_those_of_java(magic: int, java_records: JavaRecords) -> None:
    for log_append_time in (-1, 4444):
        batch = bytearray(build_batch(RECORDS, base_offset=30))
        if log_append_time >= 0:
            stamp_append_time(batch, log_append_time)
        for first_offset in (0, 31, 40):
            ours = down_convert(batch, magic, first_offset)
            assert ours == java_records.down_convert(bytes(batch), magic, first_offset)


@pytest.mark.java
@formats
@codecs
def test_java_reads_what_we_convert_down(magic: int, codec: int, java_records: JavaRecords) -> None:
    batches = build_batch(RECORDS, base_offset=30, codec=codec) + build_batch(RECORDS, base_offset=40)
    ours = down_convert(batches, magic, 41)
    theirs = java_records.down_convert(batches, magic, 41)
    assert java_records.read(ours) == java_records.read(theirs) == list(iter_message_set(theirs))
    assert [found[:4] for found in iter_messages(ours)] == [found[:4] for found in iter_messages(theirs)]


@pytest.mark.java
@formats
@codecs
def test_we_read_what_java_builds(magic: int, codec: int, java_records: JavaRecords) -> None:
    records = at_offsets(RECORDS, 30)
    message_set = java_records.build(records, magic=magic, codec=codec, base_offset=30)
    assert list(iter_message_set(message_set)) == as_legacy(records, magic)
    assert list(iter_records(up_convert(message_set))) == at_offsets(as_legacy(records, magic))
