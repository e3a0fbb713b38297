from __future__ import annotations

import time

import pytest
from confluent_kafka import OFFSET_BEGINNING, OFFSET_END, KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import OffsetSpec

from compat.harness.waiting import eventually

from .records import deliver, take


@pytest.fixture
def fifty(new_topic, producer):
    """A topic with 50 messages, one batch each, one second apart, and the first timestamp."""
    topic = new_topic(retention_ms="-1")
    first_ms = int(time.time() * 1000) - 1_000_000
    client = producer({"linger.ms": 0})
    for number in range(50):
        deliver(client, topic, value=str(number), timestamp=first_ms + 1000 * number)
    return topic, first_ms


def test_watermarks(fifty, consumer):
    topic, _ = fifty
    assert consumer(topic).get_watermark_offsets(TopicPartition(topic, 0), timeout=10) == (0, 50)


@pytest.mark.parametrize(("start", "expected"), [(OFFSET_BEGINNING, 0), (0, 0), (17, 17), (49, 49)])
def test_assign_and_seek_by_offset(fifty, consumer, start, expected):
    topic, _ = fifty
    reader = consumer(topic, offset=start)
    assert take(reader, 1)[0].offset() == expected
    reader.seek(TopicPartition(topic, 0, 5))
    assert take(reader, 1)[0].offset() == 5


def test_the_end_offset_waits_for_what_comes(fifty, consumer, producer):
    topic, _ = fifty
    reader = consumer(topic, offset=OFFSET_END, enable_partition_eof=True)
    # Only then it has asked where the end is.
    reached = eventually(lambda: reader.poll(0.5), lambda message: message is not None)
    assert (reached.error().code(), reached.offset()) == (KafkaError._PARTITION_EOF, 50)
    deliver(producer(), topic, value=b"new")
    assert take(reader, 1)[0].offset() == 50


def test_offsets_for_times(fifty, consumer):
    topic, first_ms = fifty
    reader = consumer(topic)
    for timestamp, expected in [(0, 0), (first_ms, 0), (first_ms + 1, 1), (first_ms + 42_000, 42)]:
        (found,) = reader.offsets_for_times([TopicPartition(topic, 0, timestamp)], timeout=10)
        assert found.offset == expected
    (past,) = reader.offsets_for_times([TopicPartition(topic, 0, first_ms + 10_000_000)], timeout=10)
    assert past.offset == OFFSET_END


def test_list_offsets_of_the_admin_client(fifty, admin):
    topic, first_ms = fifty
    partition = TopicPartition(topic, 0)
    for spec, expected in [
        (OffsetSpec.earliest(), 0),
        (OffsetSpec.latest(), 50),
        (OffsetSpec.max_timestamp(), 49),
        (OffsetSpec.for_timestamp(first_ms + 1), 1),
    ]:
        (future,) = admin.list_offsets({partition: spec}).values()
        assert future.result(30).offset == expected


def test_an_offset_out_of_range_resets_or_fails_as_told(fifty, consumer):
    topic, _ = fifty
    assert take(consumer(topic, offset=1000), 1)[0].offset() == 0
    with pytest.raises(KafkaException) as caught:
        take(consumer(topic, offset=1000, auto_offset_reset="error"), 1)
    assert caught.value.args[0].code() == KafkaError._AUTO_OFFSET_RESET


def test_delete_records_moves_the_low_watermark(fifty, admin, consumer):
    topic, _ = fifty
    (future,) = admin.delete_records([TopicPartition(topic, 0, 20)]).values()
    assert future.result(30).low_watermark == 20
    assert consumer(topic).get_watermark_offsets(TopicPartition(topic, 0), timeout=10) == (20, 50)
    assert take(consumer(topic, offset=3), 1)[0].offset() == 20


def test_deleting_past_the_end_fails(fifty, admin):
    topic, _ = fifty
    (future,) = admin.delete_records([TopicPartition(topic, 0, 51)]).values()
    with pytest.raises(KafkaException) as caught:
        future.result(30)
    assert caught.value.args[0].code() == KafkaError.OFFSET_OUT_OF_RANGE
