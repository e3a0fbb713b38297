from __future__ import annotations

import time

import pytest
from confluent_kafka import TIMESTAMP_CREATE_TIME, TIMESTAMP_LOG_APPEND_TIME, KafkaError, KafkaException

from .records import deliver, take

CODECS = ["none", "gzip", "snappy", "lz4", "zstd"]


def code(caught):
    return caught.value.args[0].code()


@pytest.mark.parametrize("codec", CODECS)
def test_messages_come_back_in_order_with_every_codec(new_topic, producer, consumer, codec):
    topic = new_topic()
    values = [f"value {number} ".encode() * 20 for number in range(2000)]
    client = producer({"compression.type": codec})
    for value in values:
        client.produce(topic, value)
    assert client.flush(30) == 0
    assert [message.value() for message in take(consumer(topic), len(values))] == values


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("topic_codec", ["uncompressed", "gzip", "snappy", "lz4", "zstd"])
def test_a_topic_compresses_as_it_is_told(new_topic, producer, consumer, codec, topic_codec):
    topic = new_topic(compression_type=topic_codec)
    client = producer({"compression.type": codec})
    for number in range(20):
        client.produce(topic, b"x" * 100 + str(number).encode())
    assert client.flush(30) == 0
    messages = take(consumer(topic), 20)
    assert [message.offset() for message in messages] == list(range(20))
    assert messages[-1].value() == b"x" * 100 + b"19"


@pytest.mark.parametrize("acks", ["0", "1", "all"])
def test_every_acknowledgement_level_appends(new_topic, producer, consumer, acks):
    topic = new_topic()
    report = deliver(producer({"acks": acks}), topic, value=b"x")
    assert report.offset() == (None if acks == "0" else 0)
    assert take(consumer(topic), 1)[0].value() == b"x"


def test_an_idempotent_producer_writes_each_message_once_in_order(new_topic, producer, consumer):
    topic = new_topic()
    client = producer({"enable.idempotence": True, "batch.num.messages": 10})
    for number in range(1000):
        client.produce(topic, str(number))
    assert client.flush(30) == 0
    assert [int(message.value()) for message in take(consumer(topic), 1000)] == list(range(1000))


def test_keys_values_and_headers_survive_including_null_and_empty(new_topic, producer, consumer):
    topic = new_topic()
    sent = [
        (b"key", b"value", [("h", b"1"), ("h", b"2"), ("ümlaut", b"\x00\xff")]),
        (None, b"null key", None),
        (b"null value", None, None),
        (None, None, [("null", None)]),
        (b"", b"", [("empty", b"")]),
    ]
    client = producer()
    for key, value, headers in sent:
        deliver(client, topic, key=key, value=value, headers=headers)
    messages = take(consumer(topic), len(sent))
    assert [(message.key(), message.value(), message.headers()) for message in messages] == sent


def test_create_time_is_the_producers(new_topic, producer, consumer):
    topic = new_topic()
    sent_ms = int(time.time() * 1000) - 60_000
    deliver(producer(), topic, value=b"x", timestamp=sent_ms)
    assert take(consumer(topic), 1)[0].timestamp() == (TIMESTAMP_CREATE_TIME, sent_ms)


def test_log_append_time_is_the_brokers(new_topic, producer, consumer):
    topic = new_topic(message_timestamp_type="LogAppendTime")
    before_ms = int(time.time() * 1000)
    report = deliver(producer(), topic, value=b"x", timestamp=1000)
    kind, timestamp = take(consumer(topic), 1)[0].timestamp()
    assert kind == TIMESTAMP_LOG_APPEND_TIME
    assert before_ms <= timestamp <= int(time.time() * 1000)
    assert report.timestamp()[1] == timestamp


def test_a_timestamp_too_far_in_the_future_is_refused(new_topic, producer):
    topic = new_topic()
    with pytest.raises(KafkaException) as caught:
        deliver(producer(), topic, value=b"x", timestamp=int(time.time() * 1000) + 2 * 3_600_000)
    assert code(caught) == KafkaError.INVALID_TIMESTAMP


def test_a_message_just_below_the_limit_passes_and_one_past_it_is_refused(new_topic, producer, consumer):
    topic = new_topic()
    client = producer({"message.max.bytes": 4_000_000})
    deliver(client, topic, value=b"x" * 1_048_000)
    assert len(take(consumer(topic), 1)[0].value()) == 1_048_000
    with pytest.raises(KafkaException) as caught:
        deliver(client, topic, value=b"x" * 1_048_588)
    assert code(caught) == KafkaError.MSG_SIZE_TOO_LARGE


def test_a_hundred_partitions_are_written_and_read(new_topic, producer, consumer):
    topic = new_topic(partitions=100)
    client = producer()
    for number in range(500):
        client.produce(topic, str(number), partition=number % 100)
    assert client.flush(30) == 0
    messages = take(consumer(topic, partitions=100), 500)
    assert {message.partition() for message in messages} == set(range(100))
    assert sorted(int(message.value()) for message in messages) == list(range(500))


def test_producing_to_a_missing_topic_creates_it(topic, producer, consumer):
    deliver(producer(), topic, value=b"first")
    assert take(consumer(topic), 1)[0].value() == b"first"


def test_a_partition_that_does_not_exist_is_refused(new_topic, producer):
    topic = new_topic()
    with pytest.raises(KafkaException) as caught:
        deliver(producer(), topic, value=b"x", partition=5)
    assert code(caught) == KafkaError._UNKNOWN_PARTITION


def test_small_fetches_deliver_everything(new_topic, producer, consumer):
    topic = new_topic(partitions=4)
    client = producer()
    for number in range(400):
        client.produce(topic, b"x" * 1000, partition=number % 4)
    assert client.flush(30) == 0
    limits = {"fetch_max_bytes": 10_000, "max_partition_fetch_bytes": 5_000, "message_max_bytes": 10_000}
    assert len(take(consumer(topic, partitions=4, **limits), 400)) == 400
