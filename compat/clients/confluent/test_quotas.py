"""librdkafka's clients held to their quotas, beside others that have none."""

from __future__ import annotations

import threading
import time
import uuid

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from compat.harness.connection import Connection
from compat.harness.waiting import eventually

RATE = 100_000  # bytes per second
BURST_SECONDS = 11  # what all windows hold
VALUE = bytes(10_000)


@pytest.fixture
def limited(kafka_server):
    """limited(producer_byte_rate=…): a client id with these quotas, once the broker knows them."""

    def make(**quotas):
        client_id = f"limited-{uuid.uuid4().hex}"
        entity = [{"EntityType": "client-id", "EntityName": client_id}]
        ops = [{"Key": key, "Value": float(value), "Remove": False} for key, value in quotas.items()]
        component = {"EntityType": "client-id", "MatchType": 0, "Match": client_id}
        with Connection(kafka_server.bootstrap) as connection:
            entries = [{"Entity": entity, "Ops": ops}]
            altered = connection.ask("AlterClientQuotas", 1, {"Entries": entries, "ValidateOnly": False})
            assert altered["Entries"][0]["ErrorCode"] == 0
            wanted = {"Components": [component], "Strict": True}
            eventually(lambda: connection.ask("DescribeClientQuotas", 1, wanted)["Entries"])
        return client_id

    return make


@pytest.fixture
def new_topic(kafka_server, topic):
    with Connection(kafka_server.bootstrap) as connection:
        wanted = {"Name": topic, "NumPartitions": 1, "ReplicationFactor": 1, "Assignments": [], "Configs": []}
        values = {"Topics": [wanted], "timeoutMs": 10_000, "validateOnly": False}
        assert connection.ask("CreateTopics", 7, values)["Topics"][0]["ErrorCode"] == 0
    return topic


def test_one_greedy_producer_keeps_to_its_rate_and_does_not_slow_another(kafka_server, limited, new_topic):
    client_id = limited(producer_byte_rate=RATE)
    waits = []
    greedy = Producer(
        {
            "bootstrap.servers": kafka_server.bootstrap,
            "client.id": client_id,
            "throttle_cb": waits.append,
            "linger.ms": 0,
            "batch.num.messages": 1,
        }
    )
    stored = []
    ended = threading.Event()

    def delivered(error, _):
        if error is None:
            stored.append(len(VALUE))

    def send_all_it_can():
        while not ended.is_set():
            if len(greedy) < 100:
                greedy.produce(new_topic, VALUE, partition=0, on_delivery=delivered)
            greedy.poll(0.01)

    began = time.monotonic()
    sending = threading.Thread(target=send_all_it_can)
    sending.start()
    try:
        eventually(lambda: len(waits) >= 2, seconds=60)  # its burst is over
        other_waits = []
        other = Producer(
            {
                "bootstrap.servers": kafka_server.bootstrap,
                "client.id": "other",
                "throttle_cb": other_waits.append,
                "linger.ms": 0,
            }
        )
        latencies = []
        for _ in range(200):
            sent = time.monotonic()
            other.produce(new_topic, b"value", partition=0)
            assert other.flush(20) == 0
            latencies.append(time.monotonic() - sent)
    finally:
        ended.set()
        sending.join()
    seconds = time.monotonic() - began
    greedy.purge(in_queue=True, in_flight=True)
    greedy.flush(10)
    assert other_waits == []
    assert sorted(latencies)[100] < max(event.throttle_time for event in waits)
    # What came is within the rate in the windows that count: the burst of the first ten seconds included.
    assert sum(stored) <= RATE * (seconds + BURST_SECONDS) * 1.05 + len(VALUE)


def test_a_consumer_gets_all_records_at_its_rate(kafka_server, limited, new_topic):
    producer = Producer({"bootstrap.servers": kafka_server.bootstrap})
    count = 150
    for _ in range(count):
        producer.produce(new_topic, VALUE, partition=0)
    assert producer.flush(20) == 0
    waits = []
    consumer = Consumer(
        {
            "bootstrap.servers": kafka_server.bootstrap,
            "client.id": limited(consumer_byte_rate=RATE),
            "group.id": f"group-{uuid.uuid4().hex}",
            "throttle_cb": waits.append,
            "fetch.message.max.bytes": 100_000,
        }
    )
    consumer.assign([TopicPartition(new_topic, 0, 0)])
    began = time.monotonic()
    received = 0
    while received < count * len(VALUE):
        assert time.monotonic() - began < 60
        message = consumer.poll(1)
        if message is not None:
            assert message.error() is None
            received += len(message.value())
    seconds = time.monotonic() - began
    consumer.close()
    assert waits
    assert received <= RATE * (seconds + BURST_SECONDS) * 1.05
