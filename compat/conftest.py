"""The two brokers under test, started once per run and shared by all suites.

A test that takes `kafka_server` runs on kbroker and then on a real Apache Kafka; KBROKER_COMPAT=kbroker or
KBROKER_COMPAT=apache restricts a run to one of them. KBROKER_COMPAT_ARGUMENTS="--in-memory" gives kbroker
more arguments.
"""

from __future__ import annotations

import itertools
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from compat.harness.broker import KBrokerProcess
from compat.harness.kafka import RealKafka
from compat.harness.tools import KafkaTools

HERE = Path(__file__).parent
Server = KBrokerProcess | RealKafka

SELECTIONS = {
    "kbroker": ("kbroker",),
    "apache": ("apache-kafka",),
    "both": ("kbroker", "apache-kafka"),
}
JVM_SUITES = {"connect", "java", "java_groups", "spark", "storage"}
JVM_FIXTURES = {"apache_kafka_server", "both_brokers", "kafka_tools"}
KBROKER_ALONE = {"groups/test_restart.py", "groups_consumer/test_settling.py"}
# What both brokers are told, so that their answers can be compared.
SETTINGS = {
    "group.initial.rebalance.delay.ms": "0",
    "group.consumer.assignment.interval.ms": "0",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "200",
}


def selected_brokers() -> tuple[str, ...]:
    selection = os.environ.get("KBROKER_COMPAT", "both")
    if selection not in SELECTIONS:
        raise pytest.UsageError(f"KBROKER_COMPAT={selection}: one of {', '.join(SELECTIONS)}")
    return SELECTIONS[selection]


def pytest_configure() -> None:
    """A run that is told to stop still stops its brokers."""
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, signal.default_int_handler)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "kafka_server" in metafunc.fixturenames:
        metafunc.parametrize("kafka_server", selected_brokers(), indirect=True, scope="session")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """The clients under test leave sockets to the garbage collector; that is not what is tested here.

    `--reruns` is for the tests with a JVM in them, which may be slow for a moment: what fails by chance
    between a client and kbroker is a defect.
    """
    for item in items:
        if item.path.is_relative_to(HERE):
            item.add_marker(pytest.mark.filterwarnings("ignore::ResourceWarning"))
            if _has_a_jvm(item):
                item.add_marker(pytest.mark.java)
            elif config.getoption("reruns", None):
                item.add_marker(pytest.mark.flaky(reruns=0))


def _has_a_jvm(item: pytest.Item) -> bool:
    """Whether a Java broker, a Java client, a Java tool or Spark takes part."""
    path = item.path.relative_to(HERE)
    if path.parts[0] in JVM_SUITES or JVM_FIXTURES & set(getattr(item, "fixturenames", ())):
        return True
    parameters = getattr(getattr(item, "callspec", None), "params", {})
    if "kafka_server" in parameters:
        return parameters["kafka_server"] != "kbroker" or "java" in item.nodeid or path.stem == "test_streams"
    return path.as_posix() not in KBROKER_ALONE


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """With `-n 2` a file stays on one worker, and so does Spark, whose session all its files share.

    It begins first, as nothing else takes as long.
    """
    from xdist.scheduler import LoadScopeScheduling

    class ByFile(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            path = nodeid.partition("::")[0]
            return "spark" if path.startswith("compat/spark/") else path

    config.option.loadscopereorder = False
    return ByFile(config, log)


@pytest.fixture(scope="session")
def kbroker_server() -> Iterator[KBrokerProcess]:
    arguments = tuple(os.environ.get("KBROKER_COMPAT_ARGUMENTS", "").split())
    with KBrokerProcess(SETTINGS, arguments=arguments) as server:
        yield server


@pytest.fixture(scope="session")
def apache_kafka_server() -> Iterator[RealKafka]:
    with RealKafka(SETTINGS) as server:
        yield server


@pytest.fixture(scope="session")
def kafka_server(request: pytest.FixtureRequest) -> Server:
    """The broker under test: `.bootstrap`, `.name`, `.node_id`."""
    name = "kbroker_server" if request.param == "kbroker" else "apache_kafka_server"
    server: Server = request.getfixturevalue(name)
    return server


@pytest.fixture(scope="session")
def kafka_tools() -> Iterator[KafkaTools]:
    with KafkaTools() as tools:
        yield tools


@pytest.fixture(scope="session")
def unique() -> Callable[[str], str]:
    """Names that no other test uses, also not in an earlier run on a broker that is still up."""
    numbers = itertools.count()
    run = f"{int(time.time()) % 1_000_000:06d}"
    return lambda stem: f"{stem}-{run}-{next(numbers)}"


@pytest.fixture
def topic(unique: Callable[[str], str]) -> str:
    """A topic name of this test's own; nobody has created it yet."""
    return unique("compat")
