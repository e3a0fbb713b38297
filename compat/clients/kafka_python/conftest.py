"""kafka-python clients that are closed when the test ends."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from typing import Any

import pytest
from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition

from compat.harness.brokers import Server


@pytest.fixture(scope="module")
def admin(kafka_server: Server) -> Iterator[KafkaAdminClient]:
    with closing(KafkaAdminClient(bootstrap_servers=kafka_server.bootstrap)) as client:
        yield client


@pytest.fixture
def clients() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


@pytest.fixture
def producer(kafka_server: Server, clients: ExitStack) -> Callable[..., KafkaProducer]:
    """producer(**configs)"""

    def start(**configs: Any) -> KafkaProducer:
        configs = {"linger_ms": 0, **configs}
        return clients.enter_context(
            closing(KafkaProducer(bootstrap_servers=kafka_server.bootstrap, **configs))
        )

    return start


@pytest.fixture
def consumer(kafka_server: Server, clients: ExitStack) -> Callable[..., KafkaConsumer]:
    """consumer(topic, partitions=1, **configs): assigned, at the beginning"""

    def start(topic: str, partitions: int = 1, **configs: Any) -> KafkaConsumer:
        configs = {"auto_offset_reset": "earliest", "fetch_max_wait_ms": 100, **configs}
        client = KafkaConsumer(bootstrap_servers=kafka_server.bootstrap, **configs)
        clients.enter_context(closing(client))
        client.assign([TopicPartition(topic, number) for number in range(partitions)])
        return client

    return start


@pytest.fixture
def new_topic(admin: KafkaAdminClient, topic: str) -> Callable[..., str]:
    """new_topic(partitions=1, **configs with _ for .): creates this test's topic, returns its name"""

    def create(partitions: int = 1, **configs: str) -> str:
        settings = {name.replace("_", "."): value for name, value in configs.items()}
        admin.create_topics(
            {topic: {"num_partitions": partitions, "configs": settings}}, wait_for_metadata=True
        )
        return topic

    return create
