"""confluent-kafka (librdkafka) clients."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from compat.clients.confluent.members import QUIET, Members
from compat.harness.brokers import Server
from compat.harness.waiting import eventually


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
    """new_topic(partitions=1, name=None, **configs with _ for .): creates this test's topic or another.

    Returns its name. It is there when it is in the metadata: Kafka answers CreateTopics a moment before.
    """

    def create(partitions: int = 1, name: str | None = None, **configs: str) -> str:
        wanted = name or topic
        settings = {config.replace("_", "."): value for config, value in configs.items()}
        (future,) = admin.create_topics([NewTopic(wanted, partitions, 1, config=settings)]).values()
        future.result(30)
        eventually(lambda: _partitions(admin, wanted), lambda found: found == partitions)
        return wanted

    return create


@pytest.fixture
def members(kafka_server: Server, unique: Callable[[str], str]) -> Iterator[Members]:
    """Consumers of one group of this test's own; closed at the end."""
    with Members(kafka_server.bootstrap, unique("group")) as members:
        yield members


def _partitions(admin: AdminClient, topic: str) -> int:
    """How many the broker knows, without making it create the topic."""
    found = admin.list_topics(timeout=30).topics.get(topic)
    return 0 if found is None or found.error is not None else len(found.partitions)
