"""Clients behind `kbroker wire proxy`: they get what they get without it, and every frame is explained."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer
from kafka import KafkaConsumer, KafkaProducer

from compat.harness.brokers import Server
from compat.harness.tools import KafkaTools
from tests.wire.proxy_process import ProxyProcess, proxy

VALUES = [f"value {number}" for number in range(40)]

Use = Callable[[str, str, str, KafkaTools], list[str]]


def with_kafka_python(bootstrap: str, topic: str, group: str, _: KafkaTools) -> list[str]:
    producer = KafkaProducer(bootstrap_servers=bootstrap)
    for value in VALUES:
        producer.send(topic, value.encode())
    producer.close(timeout=30)
    consumer = KafkaConsumer(topic, bootstrap_servers=bootstrap, group_id=group, auto_offset_reset="earliest")
    got: list[str] = []
    while len(got) < len(VALUES):
        got += [record.value.decode() for of in consumer.poll(1000).values() for record in of]
    consumer.close()
    return got


def with_confluent(bootstrap: str, topic: str, group: str, _: KafkaTools) -> list[str]:
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": group})
    producer.init_transactions(30)
    producer.begin_transaction()
    for value in VALUES:
        producer.produce(topic, value.encode())
    producer.commit_transaction(30)
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": group, "auto.offset.reset": "earliest"})
    consumer.subscribe([topic])
    got: list[str] = []
    while len(got) < len(VALUES):
        got += [message.value().decode() for message in consumer.consume(100, 1) if not message.error()]
    consumer.close()
    return got


def with_java(bootstrap: str, topic: str, group: str, tools: KafkaTools) -> list[str]:
    """Kafka's own console tools; the consumer in a group of the consumer protocol (KIP-848)."""
    address = ("--bootstrap-server", bootstrap, "--topic", topic)
    assert tools.run("kafka-console-producer", *address, stdin="\n".join(VALUES)).exit_code == 0
    consumed = tools.run(
        "kafka-console-consumer", *address, "--group", group, "--from-beginning",
        "--command-property", "group.protocol=consumer",
        "--max-messages", str(len(VALUES)), "--timeout-ms", "30000",
    )  # fmt: skip
    assert consumed.exit_code == 0, consumed
    return consumed.stdout.splitlines()


@pytest.fixture
def behind(kafka_server: Server) -> Iterator[ProxyProcess]:
    with proxy(kafka_server.bootstrap, "--json", "--verbose") as running:
        yield running


@pytest.mark.parametrize("use", [with_kafka_python, with_confluent, with_java])
def test_a_client_gets_the_same_through_the_proxy(
    use: Use,
    kafka_server: Server,
    kafka_tools: KafkaTools,
    behind: ProxyProcess,
    unique: Callable[[str], str],
) -> None:
    results = []
    for bootstrap in (kafka_server.bootstrap, behind.bootstrap):
        topic = unique("wire")
        create = ("--bootstrap-server", bootstrap, "--create", "--topic", topic, "--partitions", "1")
        assert kafka_tools.run("kafka-topics", *create).exit_code == 0
        results.append(use(bootstrap, topic, unique("group"), kafka_tools))
    assert results == [VALUES, VALUES]
    assert behind.stop() == 0
    frames = [frame for frame in behind.objects if "direction" in frame]
    assert [frame for frame in frames if "problem" in frame] == []
    apis = {frame["api"] for frame in frames}
    assert {"Metadata", "CreateTopics", "Produce", "FindCoordinator", "Fetch"} <= apis
    produced = [frame for frame in frames if frame["api"] == "Produce" and frame["direction"] == "request"]
    assert sum(frame["records"] for frame in produced) == len(VALUES)
    assert _told_addresses(frames) == {kafka_server.bootstrap}


def _told_addresses(frames: list[dict[str, Any]]) -> set[str]:
    """What the broker told in Metadata: the lines show what it sent, not what the client got."""
    return {
        f"{broker['host']}:{broker['port']}"
        for frame in frames
        if frame["api"] == "Metadata" and frame["direction"] == "response"
        for broker in frame["fields"]["brokers"]
    }
