"""The two brokers under test, started once per run and shared by all suites.

A test that takes `kafka_server` runs on the brokers that KBROKER_COMPAT selects: kbroker (unless told
otherwise), apache or both. KBROKER_COMPAT_ARGUMENTS="--in-memory" gives kbroker more arguments.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from compat.harness import names
from compat.harness.broker import KBrokerProcess
from compat.harness.brokers import APACHE, KBROKER, SETTINGS, Server, new_kbroker, selected_brokers
from compat.harness.kafka import RealKafka
from compat.harness.tools import KafkaTools

pytest.register_assert_rewrite("compat.clients.transactions")

HERE = Path(__file__).parent
SPARK = "compat/clients/spark/"
# So that a test need not wait for the lock of a share consumer.
SHORT_LOCKS = {"group.share.min.record.lock.duration.ms": "1000"}


def pytest_configure() -> None:
    """A run that is told to stop still stops its brokers."""
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, signal.default_int_handler)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "kafka_server" in metafunc.fixturenames:
        metafunc.parametrize("kafka_server", selected_brokers(), indirect=True, scope="session")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Spark begins, as nothing else takes as long.

    The clients under test leave sockets to the garbage collector; that is not what is tested here.
    """
    items.sort(key=lambda item: not item.nodeid.startswith(SPARK))
    for item in items:
        if item.path.is_relative_to(HERE):
            item.add_marker(pytest.mark.filterwarnings("ignore::ResourceWarning"))
            if _has_a_jvm(item):
                item.add_marker(pytest.mark.java)


def _has_a_jvm(item: pytest.Item) -> bool:
    """Whether a Java broker, a Java client, a Java tool or Spark takes part.

    Fixtures tell, and the broker that a test runs on; what starts a JVM by itself is marked `java`.
    """
    fixtures = set(getattr(item, "fixturenames", ()))
    if item.get_closest_marker("java") or item.get_closest_marker("spark") or "kafka_tools" in fixtures:
        return True
    if fixtures & {"brokers", "recording"}:
        return APACHE in selected_brokers()
    return getattr(getattr(item, "callspec", None), "params", {}).get("kafka_server") == APACHE


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """With `-n 2` a file stays on one worker, and so does Spark, whose session all its files share."""
    from xdist.scheduler import LoadScopeScheduling

    class ByFile(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            path = nodeid.partition("::")[0]
            return SPARK if path.startswith(SPARK) else path

    config.option.loadscopereorder = False
    return ByFile(config, log)


@pytest.fixture(scope="session")
def kbroker_server() -> Iterator[KBrokerProcess]:
    with new_kbroker(SETTINGS | SHORT_LOCKS) as server:
        yield server


@pytest.fixture(scope="session")
def apache_kafka_server() -> Iterator[RealKafka]:
    with RealKafka(SETTINGS | SHORT_LOCKS) as server:
        yield server


@pytest.fixture(scope="session")
def kafka_server(request: pytest.FixtureRequest) -> Server:
    """The broker under test: `.bootstrap`, `.name`, `.node_id`."""
    name = "kbroker_server" if request.param == KBROKER else "apache_kafka_server"
    server: Server = request.getfixturevalue(name)
    return server


@pytest.fixture(scope="session")
def kafka_tools() -> Iterator[KafkaTools]:
    with KafkaTools() as tools:
        yield tools


@pytest.fixture(scope="session")
def unique() -> Callable[[str], str]:
    """Names that no other test uses."""
    return names.unique


@pytest.fixture
def topic(unique: Callable[[str], str]) -> str:
    """A topic name of this test's own; nobody has created it yet."""
    return unique("compat")
