"""The pytest plugin: three fixtures, nothing to configure.

kafka_broker      one KafkaBroker for the whole session (one per xdist worker)
kafka_bootstrap   its address, for bootstrap_servers
kafka_topic       a topic of this test's own

The broker of a session serves many tests, so what one of them did to it ends with that test: injected errors
and delays, a pause, a stop or kill, the list of requests. What stays is data, and time that was advanced.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator

import pytest

from kbroker.testing.broker import KafkaBroker

_numbers = itertools.count(1)
_session_broker: pytest.StashKey[KafkaBroker] = pytest.StashKey()


@pytest.fixture(scope="session")
def kafka_broker(pytestconfig: pytest.Config) -> Iterator[KafkaBroker]:
    """A Kafka broker in memory, in a process of its own."""
    with KafkaBroker() as broker:
        pytestconfig.stash[_session_broker] = broker
        yield broker
        del pytestconfig.stash[_session_broker]


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


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_teardown(item: pytest.Item) -> Iterator[None]:
    """Before the test's own fixtures are torn down: a client that closes needs a broker that answers."""
    broker = _broker_of(item)
    try:
        if broker is not None:
            broker.recover()
    finally:
        yield
    if broker is not None and broker.is_running:
        broker.forget_requests()


def _broker_of(item: pytest.Item) -> KafkaBroker | None:
    """The broker the test may have used: the plugin's, or what the project puts in the fixture's place."""
    used = getattr(item, "funcargs", {}).get("kafka_broker")
    return used if isinstance(used, KafkaBroker) else item.config.stash.get(_session_broker, None)
