from __future__ import annotations

import time

import pytest
from kafka import TopicPartition, errors

from .records import take

CODECS = [None, "gzip", "snappy", "lz4", "zstd"]


@pytest.mark.parametrize("codec", CODECS)
def test_records_come_back_in_order_with_every_codec(new_topic, producer, consumer, codec):
    topic = new_topic()
    values = [f"value {number} ".encode() * 20 for number in range(500)]
    client = producer(compression_type=codec, linger_ms=20)
    for value in values:
        client.send(topic, value)
    client.flush()
    assert [record.value for record in take(consumer(topic), len(values))] == values


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("topic_codec", ["uncompressed", "gzip", "snappy", "lz4", "zstd"])
def test_a_topic_compresses_as_it_is_told(new_topic, producer, consumer, codec, topic_codec):
    topic = new_topic(compression_type=topic_codec)
    client = producer(compression_type=codec, linger_ms=20)
    for number in range(20):
        client.send(topic, b"x" * 100 + str(number).encode())
    client.flush()
    records = take(consumer(topic), 20)
    assert [record.offset for record in records] == list(range(20))
    assert records[-1].value == b"x" * 100 + b"19"


@pytest.mark.parametrize("acks", [0, 1, "all"])
def test_every_acknowledgement_level_appends(new_topic, producer, consumer, acks):
    topic = new_topic()
    client = producer(acks=acks, enable_idempotence=acks == "all")
    metadata = [client.send(topic, str(number).encode()).get(30) for number in range(5)]
    if acks != 0:
        assert [each.offset for each in metadata] == [0, 1, 2, 3, 4]
    assert [record.value for record in take(consumer(topic), 5)] == [b"0", b"1", b"2", b"3", b"4"]


def test_keys_values_and_headers_survive_including_null_and_empty(new_topic, producer, consumer):
    topic = new_topic()
    sent = [
        (b"key", b"value", [("h", b"1"), ("h", b"2"), ("ümlaut", b"\x00\xff")]),
        (None, b"null key", []),
        (b"null value", None, []),
        (b"", b"", [("empty", b"")]),
    ]
    client = producer()
    for key, value, headers in sent:
        client.send(topic, key=key, value=value, headers=headers).get(30)
    received = [
        (record.key, record.value, list(record.headers)) for record in take(consumer(topic), len(sent))
    ]
    assert received == sent


def test_create_time_is_the_producers(new_topic, producer, consumer):
    topic = new_topic()
    sent_ms = int(time.time() * 1000) - 60_000
    metadata = producer().send(topic, b"x", timestamp_ms=sent_ms).get(30)
    assert metadata.timestamp == sent_ms
    (record,) = take(consumer(topic), 1)
    assert (record.timestamp, record.timestamp_type) == (sent_ms, 0)


@pytest.mark.parametrize("codec", CODECS)
def test_log_append_time_is_the_brokers(new_topic, producer, consumer, codec):
    topic = new_topic(message_timestamp_type="LogAppendTime")
    before_ms = int(time.time() * 1000)
    client = producer(compression_type=codec)
    metadata = client.send(topic, b"x", timestamp_ms=before_ms - 5_000_000).get(30)
    (record,) = take(consumer(topic), 1)
    assert record.timestamp_type == 1
    assert before_ms <= record.timestamp <= int(time.time() * 1000)
    assert metadata.timestamp == record.timestamp


def test_a_timestamp_too_far_in_the_future_is_refused(new_topic, producer):
    topic = new_topic()
    future = producer().send(topic, b"x", timestamp_ms=int(time.time() * 1000) + 2 * 3_600_000)
    with pytest.raises(errors.InvalidTimestampError):
        future.get(30)


@pytest.mark.parametrize("codec", [None, "gzip", "zstd"])
def test_a_message_just_below_the_limit_passes(new_topic, producer, consumer, codec):
    topic = new_topic()
    value = bytes(range(256)) * 4090
    producer(compression_type=codec).send(topic, value).get(30)
    (record,) = take(consumer(topic), 1)
    assert record.value == value


def test_a_message_past_max_message_bytes_is_refused(new_topic, producer):
    topic = new_topic()
    future = producer(max_request_size=4 << 20).send(topic, b"x" * (1048588 + 1))
    with pytest.raises(errors.MessageSizeTooLargeError):
        future.get(30)


def test_max_message_bytes_of_the_topic_counts(new_topic, producer, consumer):
    topic = new_topic(max_message_bytes="5000000")
    value = b"x" * 4_900_000
    producer(max_request_size=6 << 20).send(topic, value).get(30)
    (record,) = take(consumer(topic), 1)
    assert len(record.value) == len(value)


def test_a_batch_larger_than_the_fetch_limits_still_arrives(new_topic, producer, consumer):
    topic = new_topic()
    producer().send(topic, b"x" * 500_000).get(30)
    (record,) = take(consumer(topic, max_partition_fetch_bytes=1000, fetch_max_bytes=1000), 1)
    assert len(record.value) == 500_000


def test_a_hundred_partitions_are_written_and_read(new_topic, producer, consumer):
    topic = new_topic(partitions=100)
    client = producer(linger_ms=10)
    for number in range(300):
        client.send(topic, str(number).encode(), partition=number % 100)
    client.flush()
    records = take(consumer(topic, partitions=100), 300)
    assert {record.partition for record in records} == set(range(100))
    assert sorted(int(record.value) for record in records) == list(range(300))


def test_small_fetches_rotate_over_the_partitions(new_topic, producer, consumer):
    topic = new_topic(partitions=8)
    client = producer(linger_ms=10)
    for number in range(800):
        client.send(topic, b"x" * 1000, partition=number % 8)
    client.flush()
    reader = consumer(topic, partitions=8, fetch_max_bytes=20_000, max_partition_fetch_bytes=10_000)
    assert len(take(reader, 800)) == 800


def test_an_idempotent_producer_writes_each_record_once(new_topic, producer, consumer):
    topic = new_topic(partitions=3)
    client = producer(enable_idempotence=True, linger_ms=1, batch_size=200)
    for number in range(500):
        client.send(topic, str(number).encode(), partition=number % 3)
    client.flush()
    values = sorted(int(record.value) for record in take(consumer(topic, partitions=3), 500))
    assert values == list(range(500))


def test_producing_to_a_missing_topic_creates_it(admin, topic, producer, consumer):
    producer().send(topic, b"first").get(30)
    assert topic in admin.list_topics()
    assert take(consumer(topic), 1)[0].value == b"first"


def test_a_consumer_waits_for_records_that_come_later(new_topic, producer, consumer):
    topic = new_topic()
    reader = consumer(topic, fetch_max_wait_ms=5000)
    assert reader.poll(timeout_ms=200) == {}
    producer().send(topic, b"late").get(30)
    started = time.monotonic()
    assert take(reader, 1)[0].value == b"late"
    assert time.monotonic() - started < 4


def test_a_paused_partition_is_not_read(new_topic, producer, consumer):
    topic = new_topic(partitions=2)
    client = producer()
    for partition in (0, 1):
        client.send(topic, b"x", partition=partition).get(30)
    reader = consumer(topic, partitions=2)
    reader.pause(TopicPartition(topic, 0))
    assert take(reader, 1)[0].partition == 1
    reader.resume(TopicPartition(topic, 0))
    assert take(reader, 1)[0].partition == 0
