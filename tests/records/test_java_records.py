"""Record batches against Kafka's own Java code, in both directions."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kbroker.protocol.records import (
    Record,
    build_batch,
    compression,
    iter_records,
    stamp_append_time,
    validate_batch,
)
from tests.records.java_records import JavaRecords
from tests.records.record_strategies import CODECS, at_offsets, record_lists

pytestmark = pytest.mark.java

RECORDS = [
    Record(1000, b"a", b"1", (("h", b"x"), ("é", None))),
    Record(1005, None, b"text " * 20_000),
    Record(999, b"c", None),
    Record(-1, b"", b""),
]


def without_deltas(records: list[Record]) -> list[Record]:
    return [record._replace(offset_delta=0) for record in records]


@settings(max_examples=60)
@given(records=record_lists, transactional=st.booleans(), append_time=st.none() | st.integers(0, 2**40))
def test_uncompressed_batches_are_byte_for_byte_those_of_java(
    java_records: JavaRecords, records: list[Record], transactional: bool, append_time: int | None
) -> None:
    state = {"producer_id": 5, "producer_epoch": 1, "base_sequence": 3} if transactional else {}
    ours = build_batch(
        records, base_offset=77, transactional=transactional, log_append_time_ms=append_time, **state
    )
    theirs = java_records.build(
        records,
        base_offset=77,
        transactional=transactional,
        log_append_time_ms=-1 if append_time is None else append_time,
        **state,
    )
    assert ours == theirs


@settings(max_examples=60)
@given(records=record_lists, codec=st.sampled_from(CODECS))
def test_java_reads_what_we_build(java_records: JavaRecords, records: list[Record], codec: int) -> None:
    batch = build_batch(records, codec=codec, base_offset=7)
    assert java_records.read(batch) == without_deltas(at_offsets(records, 7))


@settings(max_examples=60)
@given(records=record_lists, codec=st.sampled_from(CODECS))
def test_we_read_what_java_builds(java_records: JavaRecords, records: list[Record], codec: int) -> None:
    batch = java_records.build(records, codec=codec, base_offset=7)
    validate_batch(batch)
    assert list(iter_records(batch)) == at_offsets(records, 7)


@pytest.mark.parametrize("codec", CODECS, ids=compression.CODEC_NAMES)
def test_java_accepts_a_stamped_batch(java_records: JavaRecords, codec: int) -> None:
    batch = bytearray(build_batch(RECORDS, codec=codec))
    stamp_append_time(batch, 5555)
    assert [record.timestamp for record in java_records.read(bytes(batch))] == [5555] * 4


@pytest.mark.parametrize(
    ("codec", "level"), [(c, level) for c, pair in compression.LEVEL_RANGES.items() for level in pair]
)
def test_java_reads_every_level(java_records: JavaRecords, codec: int, level: int) -> None:
    batch = build_batch(RECORDS, codec=codec, level=level)
    assert java_records.read(batch) == without_deltas(at_offsets(RECORDS))


def test_a_damaged_batch_is_refused_by_java_too(java_records: JavaRecords) -> None:
    batch = bytearray(build_batch(RECORDS))
    batch[-1] ^= 1
    with pytest.raises(ValueError, match="CorruptRecordException"):
        java_records.read(bytes(batch))
