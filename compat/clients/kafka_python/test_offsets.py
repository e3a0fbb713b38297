from __future__ import annotations

import time

import pytest
from kafka import TopicPartition, errors
from kafka.admin import OffsetSpec

from .records import take


@pytest.fixture
def hundred(new_topic, producer):
    """100 records, one batch each, one second apart: their partition and the first timestamp."""
    topic = new_topic(retention_ms="-1")
    first_ms = int(time.time() * 1000) - 1_000_000
    client = producer()
    for number in range(100):
        client.send(topic, str(number).encode(), timestamp_ms=first_ms + 1000 * number).get(30)
    return TopicPartition(topic, 0), first_ms


def test_beginning_and_end_offsets(hundred, consumer):
    partition, _ = hundred
    reader = consumer(partition.topic)
    assert reader.beginning_offsets([partition]) == {partition: 0}
    assert reader.end_offsets([partition]) == {partition: 100}


def test_seek_by_offset(hundred, consumer):
    partition, _ = hundred
    reader = consumer(partition.topic)
    for offset in (50, 99, 0, 7):
        reader.seek(partition, offset)
        assert take(reader, 1)[0].offset == offset
        assert reader.position(partition) == offset + 1


def test_seek_to_the_end_and_the_beginning(hundred, consumer):
    partition, _ = hundred
    reader = consumer(partition.topic)
    reader.seek_to_end(partition)
    assert reader.position(partition) == 100
    reader.seek_to_beginning(partition)
    assert reader.position(partition) == 0


def test_offsets_for_times_is_the_first_record_at_or_after(hundred, consumer):
    partition, first_ms = hundred
    reader = consumer(partition.topic)
    for timestamp, expected in [
        (0, 0),
        (first_ms, 0),
        (first_ms + 1, 1),
        (first_ms + 42_000, 42),
        (first_ms + 98_500, 99),
    ]:
        found = reader.offsets_for_times({partition: timestamp})[partition]
        assert (found.offset, found.timestamp) == (expected, first_ms + 1000 * expected)


def test_offsets_for_a_time_past_the_last_record_is_none(hundred, consumer):
    partition, first_ms = hundred
    assert consumer(partition.topic).offsets_for_times({partition: first_ms + 10_000_000}) == {
        partition: None
    }


def test_offset_specs_of_the_admin_client(hundred, admin):
    partition, first_ms = hundred
    expected = {
        OffsetSpec.EARLIEST: (0, -1),
        OffsetSpec.LATEST: (100, -1),
        OffsetSpec.MAX_TIMESTAMP: (99, first_ms + 99_000),
        OffsetSpec.EARLIEST_LOCAL: (0, -1),
        OffsetSpec.LATEST_TIERED: (-1, -1),
    }
    for spec, (offset, timestamp) in expected.items():
        found = admin.list_partition_offsets({partition: spec})[partition]
        assert (found.offset, found.timestamp) == (offset, timestamp), spec


def test_seek_past_the_end_resets_or_fails_as_told(hundred, consumer):
    partition, _ = hundred
    reader = consumer(partition.topic)
    reader.seek(partition, 1000)
    assert take(reader, 1)[0].offset == 0
    strict = consumer(partition.topic, auto_offset_reset="none")
    strict.seek(partition, 1000)
    with pytest.raises(errors.OffsetOutOfRangeError):
        take(strict, 1)


def test_deleted_records_are_below_the_log_start(hundred, admin, consumer):
    partition, _ = hundred
    deleted = admin.delete_records({partition: 40})
    assert deleted[partition]["low_watermark"] == 40
    reader = consumer(partition.topic)
    assert reader.beginning_offsets([partition]) == {partition: 40}
    assert take(reader, 1)[0].offset == 40
    strict = consumer(partition.topic, auto_offset_reset="none")
    strict.seek(partition, 39)
    with pytest.raises(errors.OffsetOutOfRangeError):
        take(strict, 1)


def test_delete_all_records_with_minus_one(hundred, admin, consumer):
    partition, _ = hundred
    assert admin.delete_records({partition: -1})[partition]["low_watermark"] == 100
    reader = consumer(partition.topic)
    assert reader.beginning_offsets([partition]) == reader.end_offsets([partition]) == {partition: 100}


def test_deleting_past_the_high_watermark_fails(hundred, admin):
    partition, _ = hundred
    with pytest.raises(errors.OffsetOutOfRangeError):
        admin.delete_records({partition: 101})


def test_deleting_below_the_log_start_changes_nothing(hundred, admin):
    partition, _ = hundred
    admin.delete_records({partition: 40})
    assert admin.delete_records({partition: 10})[partition]["low_watermark"] == 40


def test_timestamps_below_the_log_start_are_not_found(hundred, admin, consumer):
    partition, first_ms = hundred
    admin.delete_records({partition: 40})
    found = consumer(partition.topic).offsets_for_times({partition: first_ms})[partition]
    assert found.offset == 40


def test_offsets_of_an_empty_topic(new_topic, consumer):
    partition = TopicPartition(new_topic(), 0)
    reader = consumer(partition.topic)
    assert reader.beginning_offsets([partition]) == {partition: 0}
    assert reader.end_offsets([partition]) == {partition: 0}
    assert reader.offsets_for_times({partition: 1}) == {partition: None}
