"""Loads made from this process: librdkafka, kafka-python, and raw sockets."""

from __future__ import annotations

import socket
import statistics
import struct
import threading
import time
from collections.abc import Callable

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from benchmarks.compare.brokers import Broker
from benchmarks.raw import take

_API_VERSIONS = struct.pack(">ihhih", 10, 18, 0, 1, -1)


def _configs(broker: Broker) -> dict[str, str | int | bool]:
    return {"bootstrap.servers": broker.bootstrap, "log_level": 0, **broker.librdkafka_configs}


def create_topic(broker: Broker, topic: str, partitions: int = 1, **configs: str) -> None:
    admin = AdminClient(_configs(broker))
    config = {name.replace("_", "."): value for name, value in configs.items()}
    created = admin.create_topics([NewTopic(topic, partitions, 1, config=config)], operation_timeout=60)
    created[topic].result(120)


def delete_topics(broker: Broker, topics: list[str]) -> None:
    admin = AdminClient(_configs(broker))
    for deleted in admin.delete_topics(topics, operation_timeout=60).values():
        deleted.result(120)


def end_offset(broker: Broker, topic: str) -> int:
    consumer = Consumer(_configs(broker) | {"group.id": "group-of-nobody"})
    _, end = consumer.get_watermark_offsets(TopicPartition(topic, 0), timeout=60)
    consumer.close()
    return end


def produce_librdkafka(broker: Broker, topic: str, records: int, size: int) -> float:
    """Records per second with librdkafka's defaults."""
    producer = Producer(_configs(broker) | {"queue.buffering.max.messages": 1_000_000})
    value = bytes(size)
    begin = time.perf_counter()
    for number in range(records):
        while True:
            try:
                producer.produce(topic, value)
                break
            except BufferError:
                producer.poll(0.01)
        if number % 1000 == 0:
            producer.poll(0)
    if producer.flush(300):
        raise RuntimeError("librdkafka could not deliver everything")
    return records / (time.perf_counter() - begin)


def produce_kafka_python(broker: Broker, topic: str, records: int, size: int) -> float:
    from kafka import KafkaProducer

    producer = KafkaProducer(bootstrap_servers=broker.bootstrap)
    value = bytes(size)
    begin = time.perf_counter()
    for _ in range(records):
        producer.send(topic, value)
    producer.flush(300)
    elapsed = time.perf_counter() - begin
    producer.close()
    return records / elapsed


def latency(broker: Broker, topic: str, rate: int, seconds: float, size: int = 100) -> dict[str, float]:
    """Milliseconds from produce to acknowledgement and to a consumer, at a fixed rate with linger 0."""
    produced: list[float] = []
    received: list[float] = []
    stop = threading.Event()
    ready = threading.Event()
    reader = threading.Thread(target=_receive, args=(broker, topic, received, stop, ready), daemon=True)
    reader.start()
    if not ready.wait(60):
        raise RuntimeError("the consumer got no assignment")
    producer = Producer(_configs(broker) | {"linger.ms": 0, "acks": "all"})
    count = int(rate * seconds)
    begin = time.perf_counter() + 0.1
    padding = bytes(max(0, size - 8))
    for number in range(count):
        due = begin + number / rate
        while (now := time.perf_counter()) < due:
            producer.poll(min(0.001, due - now))
        producer.produce(topic, struct.pack(">d", now) + padding, on_delivery=_acknowledged(produced, now))
        producer.poll(0)
    producer.flush(60)
    deadline = time.monotonic() + 60
    while len(received) < count and time.monotonic() < deadline:
        time.sleep(0.01)
    stop.set()
    reader.join(60)
    # The first second warms up.
    skip = min(rate, count // 4)
    return {
        **{f"produce_{name}": value for name, value in percentiles(produced[skip:]).items()},
        **{f"end_to_end_{name}": value for name, value in percentiles(received[skip:]).items()},
    }


def _acknowledged(produced: list[float], sent: float) -> Callable[..., None]:
    def note(*_: object) -> None:
        produced.append((time.perf_counter() - sent) * 1000)

    return note


def _receive(
    broker: Broker, topic: str, received: list[float], stop: threading.Event, ready: threading.Event
) -> None:
    consumer = Consumer(
        _configs(broker) | {"group.id": "latency", "fetch.wait.max.ms": 500, "enable.auto.commit": False}
    )
    consumer.assign([TopicPartition(topic, 0, 0)])
    ready.set()
    while not stop.is_set():
        message = consumer.poll(0.1)
        if message is not None and message.error() is None:
            now = time.perf_counter()
            (sent,) = struct.unpack_from(">d", message.value() or bytes(8))
            received.append((now - sent) * 1000)
    consumer.close()


def percentiles(samples: list[float]) -> dict[str, float]:
    if len(samples) < 2:
        raise RuntimeError("too few samples")
    ordered = sorted(samples)
    cuts = statistics.quantiles(ordered, n=1000, method="inclusive")
    return {"p50_ms": cuts[499], "p99_ms": cuts[989], "p999_ms": cuts[998], "max_ms": ordered[-1]}


def open_connections(broker: Broker, count: int) -> list[socket.socket]:
    """Connections that have been answered once and stay open."""
    sockets = []
    for _ in range(count):
        connection = socket.create_connection((broker.host, broker.port), timeout=60)
        connection.sendall(_API_VERSIONS)
        sockets.append(connection)
    for connection in sockets:
        (size,) = struct.unpack(">i", take(connection, 4))
        take(connection, size)
    return sockets
