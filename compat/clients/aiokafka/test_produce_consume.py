from __future__ import annotations

import asyncio
import time

import pytest
from aiokafka import TopicPartition
from aiokafka.errors import MessageSizeTooLargeError, OffsetOutOfRangeError

from .clients import take

CODECS = [None, "gzip", "snappy", "lz4", "zstd"]


@pytest.mark.parametrize("codec", CODECS)
async def test_records_come_back_in_order_with_every_codec(clients, codec):
    topic = await clients.new_topic()
    producer = await clients.producer(compression_type=codec, linger_ms=10)
    values = [f"value {number} ".encode() * 20 for number in range(300)]
    await asyncio.gather(*[await producer.send(topic, value) for value in values])
    records = await take(await clients.consumer(topic), len(values))
    assert [record.value for record in records] == values


@pytest.mark.parametrize("acks", [0, 1, "all"])
async def test_every_acknowledgement_level_appends(clients, acks):
    topic = await clients.new_topic()
    producer = await clients.producer(acks=acks)
    await producer.send_and_wait(topic, b"x")
    (record,) = await take(await clients.consumer(topic), 1)
    assert record.value == b"x"


async def test_an_idempotent_producer_writes_each_record_once_in_order(clients):
    topic = await clients.new_topic()
    producer = await clients.producer(enable_idempotence=True, max_batch_size=200)
    await asyncio.gather(*[await producer.send(topic, str(number).encode()) for number in range(300)])
    records = await take(await clients.consumer(topic), 300)
    assert [int(record.value) for record in records] == list(range(300))


async def test_keys_values_and_headers_survive_including_null_and_empty(clients):
    topic = await clients.new_topic()
    sent = [
        (b"key", b"value", (("h", b"1"), ("h", b"2"), ("ümlaut", b"\x00\xff"))),
        (None, b"null key", ()),
        (b"null value", None, ()),
        (b"", b"", (("empty", b""),)),
    ]
    producer = await clients.producer()
    for key, value, headers in sent:
        await producer.send_and_wait(topic, key=key, value=value, headers=list(headers))
    records = await take(await clients.consumer(topic), len(sent))
    assert [(record.key, record.value, tuple(record.headers)) for record in records] == sent


async def test_create_time_is_the_producers(clients):
    topic = await clients.new_topic()
    sent_ms = int(time.time() * 1000) - 60_000
    metadata = await (await clients.producer()).send_and_wait(topic, b"x", timestamp_ms=sent_ms)
    (record,) = await take(await clients.consumer(topic), 1)
    assert (metadata.timestamp, record.timestamp, record.timestamp_type) == (sent_ms, sent_ms, 0)


async def test_log_append_time_is_the_brokers(clients):
    topic = await clients.new_topic(message_timestamp_type="LogAppendTime")
    before_ms = int(time.time() * 1000)
    metadata = await (await clients.producer()).send_and_wait(topic, b"x", timestamp_ms=1000)
    (record,) = await take(await clients.consumer(topic), 1)
    assert before_ms <= record.timestamp <= int(time.time() * 1000)
    assert (metadata.timestamp, record.timestamp_type) == (record.timestamp, 1)


async def test_large_messages_pass_up_to_the_limit(clients):
    topic = await clients.new_topic()
    producer = await clients.producer(max_request_size=4 << 20, max_batch_size=4 << 20)
    await producer.send_and_wait(topic, b"x" * 1_040_000)
    (record,) = await take(await clients.consumer(topic), 1)
    assert len(record.value) == 1_040_000
    with pytest.raises(MessageSizeTooLargeError):
        await producer.send_and_wait(topic, b"x" * 1_048_589)


async def test_a_hundred_partitions_are_written_and_read(clients):
    topic = await clients.new_topic(partitions=100)
    producer = await clients.producer(linger_ms=10)
    futures = [await producer.send(topic, b"x", partition=number % 100) for number in range(300)]
    await asyncio.gather(*futures)
    records = await take(await clients.consumer(topic, partitions=100), 300)
    assert {record.partition for record in records} == set(range(100))


async def test_producing_to_a_missing_topic_creates_it(clients, topic):
    await (await clients.producer()).send_and_wait(topic, b"first")
    (record,) = await take(await clients.consumer(topic), 1)
    assert record.value == b"first"


@pytest.fixture
def first_ms():
    return int(time.time() * 1000) - 1_000_000


async def fifty(clients, first_ms):
    """The partition of a topic with 50 records, one second apart."""
    topic = await clients.new_topic(retention_ms="-1")
    producer = await clients.producer()
    for number in range(50):
        await producer.send_and_wait(topic, str(number).encode(), timestamp_ms=first_ms + 1000 * number)
    return TopicPartition(topic, 0)


async def test_offsets_and_seeks(clients, first_ms):
    partition = await fifty(clients, first_ms)
    consumer = await clients.consumer(partition.topic)
    assert await consumer.beginning_offsets([partition]) == {partition: 0}
    assert await consumer.end_offsets([partition]) == {partition: 50}
    for timestamp, expected in [(first_ms, 0), (first_ms + 1, 1), (first_ms + 42_000, 42)]:
        found = (await consumer.offsets_for_times({partition: timestamp}))[partition]
        assert (found.offset, found.timestamp) == (expected, first_ms + 1000 * expected)
    assert await consumer.offsets_for_times({partition: first_ms + 10**9}) == {partition: None}
    consumer.seek(partition, 33)
    assert (await take(consumer, 1))[0].offset == 33
    await consumer.seek_to_beginning(partition)
    assert (await take(consumer, 1))[0].offset == 0
    await consumer.seek_to_end(partition)
    assert await consumer.position(partition) == 50


async def test_deleted_records_are_out_of_range(clients, first_ms):
    from aiokafka.admin import RecordsToDelete

    partition = await fifty(clients, first_ms)
    deleted = await clients.admin.delete_records({partition: RecordsToDelete(before_offset=20)})
    assert deleted == {partition: 20}
    consumer = await clients.consumer(partition.topic)
    assert await consumer.beginning_offsets([partition]) == {partition: 20}
    assert (await take(consumer, 1))[0].offset == 20
    strict = await clients.consumer(partition.topic, auto_offset_reset="none")
    strict.seek(partition, 19)
    with pytest.raises(OffsetOutOfRangeError):
        await take(strict, 1)
