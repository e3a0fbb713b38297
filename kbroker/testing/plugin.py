"""The pytest plugin: three fixtures, nothing to configure.

kafka_broker      one KafkaBroker for the whole session (one per xdist worker)
kafka_bootstrap   its address, for bootstrap_servers
kafka_topic       a topic of this test's own

kafka-python warns of itself when it is imported on Python 3.11 and 3.12. That is no fault of the tests that
import it, and does not stop them where warnings are errors.

The broker of a session serves many tests, so what one of them did to it ends with that test: injected errors
and delays, a pause, a stop or kill, the list of requests. What stays is data, and time that was advanced.
"""

from __future__ import annotations

import itertools
import re
import warnings
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


@pytest.hookimpl(hookwrapper=True, tryfirst=True)
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


# pytest sets its filters around each of these: ours come after them, and go with them.


@pytest.hookimpl(hookwrapper=True, trylast=True)
def pytest_load_initial_conftests() -> Iterator[None]:
    _let_kafka_python_warn()
    yield


@pytest.hookimpl(hookwrapper=True, trylast=True)
def pytest_collection() -> Iterator[None]:
    _let_kafka_python_warn()
    yield


@pytest.hookimpl(hookwrapper=True, trylast=True)
def pytest_runtest_protocol() -> Iterator[None]:
    _let_kafka_python_warn()
    yield


def _let_kafka_python_warn() -> None:
    """It calls read_text, which warns of it, and then calls open_text, which warns of that."""
    warnings.filterwarnings("ignore", "read_text is deprecated", DeprecationWarning, r"kafka\.")
    warnings.filterwarnings(
        "ignore", "open_text is deprecated", DeprecationWarning, r"importlib\.resources\."
    )
