"""confluent-kafka (librdkafka) clients."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from compat.conftest import Server
from compat.harness.waiting import eventually

# Clients that outlive the broker would tell so on standard error.
QUIET = {"log_level": 2}


@pytest.fixture
def admin(kafka_server: Server) -> AdminClient:
    return AdminClient({"bootstrap.servers": kafka_server.bootstrap, **QUIET})


@pytest.fixture
def producer(kafka_server: Server) -> Iterator[Callable[..., Producer]]:
    """producer({"acks": …}); all are flushed at the end"""
    started: list[Producer] = []

    def start(configs: dict[str, Any] | None = None) -> Producer:
        settings = {"bootstrap.servers": kafka_server.bootstrap, "linger.ms": 5, **QUIET, **(configs or {})}
        started.append(Producer(settings))
        return started[-1]

    yield start
    for client in started:
        client.flush(10)


@pytest.fixture
def consumer(kafka_server: Server) -> Iterator[Callable[..., Consumer]]:
    """consumer(topic, partitions=1, offset=0, **configs with _ for .): assigned, no group joined"""
    with ExitStack() as stack:

        def start(topic: str, partitions: int = 1, offset: int = 0, **configs: Any) -> Consumer:
            settings: dict[str, Any] = {
                "bootstrap.servers": kafka_server.bootstrap,
                "group.id": "unused",
                "enable.auto.commit": False,
                "auto.offset.reset": "earliest",
                "fetch.wait.max.ms": 100,
                **QUIET,
            }
            settings.update({name.replace("_", "."): value for name, value in configs.items()})
            client = stack.enter_context(closing(Consumer(settings)))
            client.assign([TopicPartition(topic, number, offset) for number in range(partitions)])
            return client

        yield start


@pytest.fixture
def new_topic(admin: AdminClient, topic: str) -> Callable[..., str]:
    """new_topic(partitions=1, **configs with _ for .): creates this test's topic, returns its name.

    It is there when it is in the metadata: Apache Kafka answers CreateTopics a moment before.
    """

    def create(partitions: int = 1, **configs: str) -> str:
        settings = {name.replace("_", "."): value for name, value in configs.items()}
        (future,) = admin.create_topics([NewTopic(topic, partitions, 1, config=settings)]).values()
        future.result(30)
        eventually(lambda: _partitions(admin, topic), lambda found: found == partitions)
        return topic

    return create


def _partitions(admin: AdminClient, topic: str) -> int:
    """How many the broker knows, without making it create the topic."""
    found = admin.list_topics(timeout=30).topics.get(topic)
    return 0 if found is None or found.error is not None else len(found.partitions)
