"""The records of a batch: reading, building, checking each, and what hostile bytes come to."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kbroker.protocol.records import (
    BATCH_OVERHEAD,
    DecompressedTooLarge,
    InvalidRecord,
    Record,
    RecordError,
    build_batch,
    iter_records,
    iter_spans,
    payload_of,
    read_header,
    recompress,
    replace_payload,
    validate_batch,
)
from kbroker.protocol.records.batch import assemble_batch
from kbroker.protocol.records.codec import encode_varint
from tests.records.record_strategies import CODECS, at_offsets, record_lists

RECORDS = [Record(1000, b"a", b"1", (("h", b"x"),)), Record(1002, b"b", None), Record(1001, None, b"3")]


def with_payload(payload: bytes, count: int) -> bytes:
    """A batch of `count` records that has this payload, and a right checksum."""
    header = read_header(build_batch(RECORDS))
    return assemble_batch(header._replace(record_count=count, last_offset_delta=count - 1), payload)


def record_bytes(body: bytes) -> bytes:
    return encode_varint(len(body)) + body


@given(record_lists, st.sampled_from(CODECS), st.integers(0, 2**62))
def test_records_come_back_as_they_were_put_in(records: list[Record], codec: int, base_offset: int) -> None:
    batch = build_batch(records, codec=codec, base_offset=base_offset)
    header = validate_batch(batch)
    assert header.max_timestamp == max(record.timestamp for record in records)
    assert list(iter_records(batch)) == at_offsets(records, base_offset)


@given(record_lists, st.sampled_from(CODECS), st.sampled_from(CODECS))
def test_another_codec_changes_neither_records_nor_header(records: list[Record], old: int, new: int) -> None:
    batch = build_batch(records, codec=old, base_offset=9, producer_id=1, producer_epoch=1, base_sequence=1)
    again = recompress(batch, new)
    assert validate_batch(again).codec == new
    assert list(iter_records(again)) == list(iter_records(batch))
    unchanged = {"batch_length": 0, "crc": 0, "attributes": 0}
    assert read_header(again)._replace(**unchanged) == read_header(batch)._replace(**unchanged)


@given(record_lists)
def test_spans_are_the_bytes_of_each_record(records: list[Record]) -> None:
    batch = build_batch(records)
    header = read_header(batch)
    payload = payload_of(batch, header)
    spans = list(iter_spans(payload, header))
    assert [(span.key, span.has_value) for span in spans] == [(r.key, r.value is not None) for r in records]
    assert [span.offset_delta for span in spans] == list(range(len(records)))
    assert [header.base_timestamp + span.timestamp_delta for span in spans] == [r.timestamp for r in records]
    kept = spans[::2]
    filtered = replace_payload(
        header._replace(record_count=len(kept)), b"".join(payload[s.start : s.end] for s in kept), codec=4
    )
    assert list(iter_records(filtered)) == at_offsets(records)[::2]


def test_spans_of_large_records_and_batches_are_right() -> None:
    records = [Record(n * 20_000, b"k" * n, b"v" * 20_000) for n in range(0, 20_001, 5000)]
    records += [Record(n, b"%d" % n, None) for n in range(9000)]
    batch = build_batch(records)
    header = read_header(batch)
    spans = list(iter_spans(payload_of(batch, header), header))
    assert [(span.offset_delta, span.timestamp_delta, span.key) for span in spans] == [
        (index, record.timestamp, record.key) for index, record in enumerate(records)
    ]
    assert list(iter_records(batch)) == at_offsets(records)


def test_a_batch_without_records_cannot_be_built() -> None:
    with pytest.raises(ValueError, match="one record"):
        build_batch([])


def test_a_batch_that_compaction_emptied_has_no_records() -> None:
    assert list(iter_records(with_payload(b"", 0))) == []


def test_header_names_that_are_not_utf8_survive() -> None:
    body = b"\0\0\0\1\1\2" + b"\4\xff\xfe" + b"\2v"
    batch = with_payload(record_bytes(body), 1)
    (record,) = iter_records(batch)
    assert payload_of(build_batch([record]), read_header(build_batch([record]))) == record_bytes(body)


@pytest.mark.parametrize("codec", CODECS)
def test_decompression_stops_at_the_limit(codec: int) -> None:
    batch = build_batch([Record(0, None, bytes(1_000_000))], codec=codec)
    size = len(payload_of(batch, read_header(batch)))
    assert next(iter_records(batch, limit=size)).value == bytes(1_000_000)
    with pytest.raises(DecompressedTooLarge):
        iter_records(batch, limit=size - 1)


def test_timestamps_beyond_int64_are_invalid() -> None:
    batch = build_batch([Record(2**63 - 1, None, None)] * 2)
    header = read_header(batch)
    payload = payload_of(batch, header)
    later = record_bytes(b"\0" + encode_varint(1) + encode_varint(1) + b"\1\1\0")
    with pytest.raises(InvalidRecord):
        list(iter_records(assemble_batch(header, payload[: len(payload) // 2] + later)))
    for timestamps in ((2**63,), (2**63 - 1, -(2**63)), (-2, 2**63 - 1)):
        with pytest.raises(InvalidRecord):
            build_batch([Record(timestamp, None, None) for timestamp in timestamps])


@pytest.mark.parametrize(
    "payload",
    [
        b"",
        b"\x80",
        b"\x80" * 40,
        encode_varint(-1),
        encode_varint(2**31 - 1),
        encode_varint(2**62),
        record_bytes(b""),
        record_bytes(b"\0"),
        record_bytes(b"\0\0\0"),
        record_bytes(b"\0\0\0\1"),
        record_bytes(b"\0\0\0\1\1"),
        record_bytes(b"\0\0\0\1\1\0") + b"\0",  # something behind the last record
        record_bytes(b"\0\0\0\1\1\0\0"),  # something behind the last part
        record_bytes(b"\0\0\0\x14a\1\0"),  # a key beyond its record
        record_bytes(b"\0\0\0\1\x14a\0"),  # a value beyond its record
        record_bytes(b"\0\0\0\1" + encode_varint(2**40)),
        record_bytes(b"\0\0\0\1\1\1"),  # -1 headers
        record_bytes(b"\0\0\0\1\1" + encode_varint(2**31 - 1) + b"\0" * 9),
        record_bytes(b"\0\0\0\1\1\2\1\0"),  # a header without a name
        record_bytes(b"\0\0\0\1\1\2\4a\1"),
        record_bytes(b"\0\0\0\1\1\2\2a\4x"),
        record_bytes(b"\0" + b"\xff" * 9 + b"\x02\0\1\1\0"),  # 65 bits of timestamp
        record_bytes(b"\0" + b"\xff" * 10 + b"\0\0\1\1\0"),
        record_bytes(b"\0\0" + encode_varint(2**31) + b"\1\1\0"),
    ],
)
def test_bytes_that_are_no_record_are_invalid(payload: bytes) -> None:
    batch = with_payload(payload, 1)
    with pytest.raises(InvalidRecord):
        list(iter_records(batch))
    # Tails that iter_records takes for more than it is given must not fool the quick look either.
    batch = with_payload(payload + bytes(40), 1)
    with pytest.raises(InvalidRecord):
        list(iter_spans(payload_of(batch, read_header(batch)), read_header(batch)))


@pytest.mark.parametrize("count", [-1, 2, 4, 2**31 - 1])
def test_a_count_other_than_that_of_the_records_is_invalid(count: int) -> None:
    batch = build_batch(RECORDS)
    wrong = with_payload(payload_of(batch, read_header(batch)), count)
    with pytest.raises(InvalidRecord):
        list(iter_records(wrong))
    with pytest.raises(InvalidRecord):
        list(iter_spans(payload_of(wrong, read_header(wrong)), read_header(wrong)))


@given(st.binary(max_size=200), st.sampled_from(CODECS), st.integers(-1, 20))
def test_random_payloads_raise_record_errors_only(payload: bytes, codec: int, count: int) -> None:
    header = read_header(build_batch(RECORDS))
    batch = assemble_batch(header._replace(attributes=codec, record_count=count), payload)
    for read in (
        lambda: list(iter_records(batch, limit=1 << 20)),
        lambda: list(iter_spans(payload_of(batch, header._replace(attributes=codec), 1 << 20), header)),
        lambda: recompress(batch, 0, limit=1 << 20),
        lambda: validate_batch(batch),
    ):
        try:
            read()
        except RecordError:
            continue


@given(record_lists, st.sampled_from(CODECS), st.data())
def test_mutated_batches_raise_record_errors_only(
    records: list[Record], codec: int, data: st.DataObject
) -> None:
    batch = bytearray(build_batch(records, codec=codec))
    for _ in range(data.draw(st.integers(1, 4))):
        batch[data.draw(st.integers(0, len(batch) - 1))] = data.draw(st.integers(0, 255))
    if data.draw(st.booleans()):
        del batch[data.draw(st.integers(0, len(batch) - 1)) :]
    try:
        found = list(iter_records(batch, limit=1 << 22))
    except RecordError:
        return
    assert sum(len(record.key or b"") + len(record.value or b"") for record in found) <= 1 << 22


@given(st.binary(max_size=BATCH_OVERHEAD + 40))
def test_random_bytes_raise_record_errors_only(data: bytes) -> None:
    with pytest.raises(RecordError):
        validate_batch(data)
    try:
        list(iter_records(data, limit=1 << 20))
    except RecordError:
        return
