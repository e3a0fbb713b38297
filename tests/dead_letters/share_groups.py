"""Share groups with dead letters, by librdkafka's share consumer, and what is in their dead-letter topics."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from typing import Any, cast

import confluent_kafka
from confluent_kafka import admin

from kbroker.dead_letters.origin import Headers, Origin, letter

REJECT = confluent_kafka.AcknowledgeType.REJECT
RELEASE = confluent_kafka.AcknowledgeType.RELEASE
ACCEPT = confluent_kafka.AcknowledgeType.ACCEPT
GROUP = "billing"
kafka_admin: Any = admin  # it does not say what it exports


def configure_group(bootstrap: str, **configs: str) -> None:
    """Names with _ for a dot."""
    entries = [
        kafka_admin.ConfigEntry(
            name.replace("_", "."), value, incremental_operation=kafka_admin.AlterConfigOpType.SET
        )
        for name, value in {"share_auto_offset_reset": "earliest", **configs}.items()
    ]
    resource = kafka_admin.ConfigResource(kafka_admin.ResourceType.GROUP, GROUP, incremental_configs=entries)
    with kafka_admin.AdminClient({"bootstrap.servers": bootstrap}) as client:
        for altered in client.incremental_alter_configs([resource]).values():
            altered.result(20)


def produce(bootstrap: str, topic: str, values: range, **more: Any) -> None:
    producer = confluent_kafka.Producer({"bootstrap.servers": bootstrap})
    for value in values:
        producer.produce(topic, b"v%d" % value, key=b"k%d" % value, **more)
    assert producer.flush(20) == 0


@contextmanager
def share_consumer(bootstrap: str, *topics: str, **more: Any) -> Iterator[Any]:
    settings = {
        "bootstrap.servers": bootstrap,
        "group.id": GROUP,
        "share.acknowledgement.mode": "explicit",
        "log_level": 0,
        **more,
    }
    with closing(confluent_kafka.ShareConsumer(settings)) as consumer:
        consumer.subscribe(list(topics))
        yield consumer


def acknowledge(
    consumer: Any, kind: Callable[[Any], Any], enough: Callable[[list[bytes]], bool], seconds: float = 30
) -> list[bytes]:
    """Acknowledge what comes until it is enough; returns the values, in their order."""
    seen: list[bytes] = []
    deadline = time.monotonic() + seconds
    while not enough(seen):
        assert time.monotonic() < deadline, f"only {seen}"
        for message in consumer.poll(0.5) or ():
            if message.error() is None:
                consumer.acknowledge(message, kind(message))
                seen.append(message.value())
        consumer.commit_sync(10)
    return seen


def dead_letters(bootstrap: str, topic: str) -> list[tuple[Origin, bytes | None, bytes | None, Any]]:
    """Origin, key, value and own headers; empty if there is no such topic."""
    settings = {
        "bootstrap.servers": bootstrap,
        "group.id": "reader",
        "enable.partition.eof": True,
        "log_level": 0,
    }
    found = []
    with closing(confluent_kafka.Consumer({**settings, "auto.offset.reset": "earliest"})) as consumer:
        topics = consumer.list_topics(timeout=20).topics
        if topic not in topics:
            return []
        partitions = topics[topic].partitions
        consumer.assign([confluent_kafka.TopicPartition(topic, each, 0) for each in partitions])
        left = len(partitions)
        while left:
            message = consumer.poll(20)
            assert message is not None
            if message.error():
                left -= 1
                continue
            told = letter(cast("Headers", message.headers() or []))
            assert told is not None
            found.append((told.origin, message.key(), message.value(), told.headers))
    return found
