"""The pytest plugin: three fixtures, nothing to configure.

kafka_broker      one KafkaBroker for the whole session (one per xdist worker)
kafka_bootstrap   its address, for bootstrap_servers
kafka_topic       a topic of this test's own
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from kbroker.testing.broker import KafkaBroker

_numbers = itertools.count(1)


@pytest.fixture(scope="session")
def kafka_broker() -> Iterator[KafkaBroker]:
    """A Kafka broker in memory, in a process of its own."""
    from kbroker.testing.broker import KafkaBroker

    with KafkaBroker() as broker:
        yield broker


@pytest.fixture(scope="session")
def kafka_bootstrap(kafka_broker: KafkaBroker) -> str:
    """host:port of the broker."""
    return kafka_broker.bootstrap_servers


@pytest.fixture
def kafka_topic(kafka_broker: KafkaBroker, request: pytest.FixtureRequest) -> str:
    """A fresh topic with one partition, named after the test."""
    name = re.sub(r"[^a-zA-Z0-9._-]", "-", request.node.name)[:200]
    topic = f"{name}-{next(_numbers)}"
    kafka_broker.create_topic(topic)
    return topic
