"""What compaction writes in place of a batch."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kbroker.protocol.records import (
    Record,
    build_batch,
    build_empty_batch,
    iter_records,
    read_header,
    replace_records,
    stamp_append_time,
    validate_stored_batch,
)
from tests.records.java_records import JavaRecords
from tests.records.record_strategies import CODECS, record_lists

PRODUCER = {"producer_id": 5, "producer_epoch": 1, "base_sequence": 40}
RECORDS = [
    Record(1000, b"a", b"1"),
    Record(1009, b"b", None),
    Record(1003, b"c", b"3", (("h", None),)),
    Record(1001, b"d", b"4"),
]


@given(record_lists, st.sampled_from(CODECS), st.data())
def test_retained_records_keep_offsets_and_the_batch_its_range(
    records: list[Record], codec: int, data: st.DataObject
) -> None:
    batch = build_batch(records, base_offset=100, codec=codec, **PRODUCER)
    header = read_header(batch)
    every = list(iter_records(batch))
    kept = [record for record in every if data.draw(st.booleans())] or every[-1:]
    horizon = data.draw(st.none() | st.integers(0, 2**40))
    left = replace_records(header, kept, delete_horizon_ms=horizon)
    assert list(iter_records(left)) == kept
    after = validate_stored_batch(left)
    assert (after.base_offset, after.last_offset) == (header.base_offset, header.last_offset)
    assert (after.last_sequence, after.producer_id) == (header.last_sequence, 5)
    assert (after.codec, after.record_count) == (codec, len(kept))
    assert after.delete_horizon_ms == horizon
    assert after.max_timestamp == max(record.timestamp for record in kept)
    # The horizon stays when more records go later.
    assert read_header(replace_records(after, kept[:1])).delete_horizon_ms == horizon


def test_the_append_time_stays_that_of_the_batch() -> None:
    batch = bytearray(build_batch(RECORDS, base_offset=10))
    stamp_append_time(batch, 7777)
    left = replace_records(read_header(batch), list(iter_records(batch))[1:3], delete_horizon_ms=99)
    assert [record.timestamp for record in iter_records(left)] == [7777, 7777]
    assert read_header(left).max_timestamp == 7777


def test_an_empty_batch_keeps_the_offset_range_and_the_last_sequence() -> None:
    batch = build_batch(RECORDS, base_offset=10, codec=4, **PRODUCER)
    header = validate_stored_batch(build_empty_batch(read_header(batch)))
    assert (header.base_offset, header.last_offset, header.last_sequence) == (10, 13, 43)
    assert (header.record_count, header.codec, header.size_bytes) == (0, 0, 61)


@pytest.mark.java
@pytest.mark.parametrize("append_time", [False, True])
@pytest.mark.parametrize("kept", [(0, 2), (1,), (2, 3), ()])
def test_batches_are_byte_for_byte_those_that_java_leaves(
    kept: tuple[int, ...], append_time: bool, java_records: JavaRecords
) -> None:
    batch = bytearray(build_batch(RECORDS, base_offset=10, **PRODUCER))
    if append_time:
        stamp_append_time(batch, 7777)
    records = [record for record in iter_records(batch) if record.offset_delta in kept]
    header = read_header(batch)
    if records:
        # Java sets a horizon where a tombstone remains.
        ours = replace_records(header, records, delete_horizon_ms=55_555 if 1 in kept else None)
    else:
        ours = build_empty_batch(header)
    theirs = java_records.retain(bytes(batch), [10 + delta for delta in kept], delete_horizon_ms=55_555)
    assert ours == theirs
