"""The fixtures in somebody's test suite: what one test does to the broker ends with it."""

from __future__ import annotations

import subprocess
import textwrap
from pathlib import Path

import pytest

from tests.support.inner_pytest import PYTEST

pytestmark = pytest.mark.slow

CLIENT = """
    from confluent_kafka import Producer


    def send(bootstrap, topic):
        producer = Producer({"bootstrap.servers": bootstrap, "message.timeout.ms": 20_000})
        outcomes = []
        producer.produce(topic, b"x", on_delivery=lambda error, _: outcomes.append(error and error.name()))
        producer.flush(30)
        return outcomes[0]

"""

DISTURBED = {
    "an_error_until_healed": 'kafka_broker.fail("Produce", "TOPIC_AUTHORIZATION_FAILED", times=None)',
    "a_delay": 'kafka_broker.delay(api="Produce", ms=600_000)',
    "a_pause": "kafka_broker.pause()",
    "a_stop": "kafka_broker.stop()",
    "a_kill": "kafka_broker.kill()",
    "a_kill_from_outside": "os.kill(kafka_broker.pid, signal.SIGKILL)",
}


def passed(directory: Path, tests: str, *arguments: str) -> str:
    """Run them in a process of their own, in this order."""
    (directory / "test_it.py").write_text(textwrap.dedent(tests))
    done = subprocess.run(
        [*PYTEST, *arguments, str(directory)],
        capture_output=True,
        text=True,
        cwd=directory,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize("what", DISTURBED)
def test_the_next_test_finds_a_broker_that_answers_after(what: str, tmp_path: Path) -> None:
    passed(
        tmp_path,
        f"""
    import os, signal
{CLIENT}
    def test_one(kafka_broker):
        {DISTURBED[what]}


    def test_two(kafka_bootstrap, kafka_topic):
        assert send(kafka_bootstrap, kafka_topic) is None
""",
    )


def test_the_fixtures_of_a_test_are_torn_down_with_a_broker_that_answers(tmp_path: Path) -> None:
    passed(
        tmp_path,
        f"""
    import pytest
{CLIENT}
    @pytest.fixture
    def client(kafka_bootstrap, kafka_topic):
        yield
        assert send(kafka_bootstrap, kafka_topic) is None


    def test_paused(client, kafka_broker):
        kafka_broker.pause()
""",
    )


def test_a_broker_of_the_projects_own_under_the_same_name_is_healed_too(tmp_path: Path) -> None:
    passed(
        tmp_path,
        f"""
    import pytest
    from kbroker.testing import KafkaBroker
{CLIENT}
    @pytest.fixture(scope="module")
    def kafka_broker():
        with KafkaBroker(configs={{"num.partitions": "2"}}) as broker:
            yield broker


    def test_one(kafka_broker):
        kafka_broker.fail(api="Produce", error="TOPIC_AUTHORIZATION_FAILED", times=None)


    def test_two(kafka_broker):
        assert send(kafka_broker.bootstrap_servers, "t") is None
""",
    )


def test_requests_are_those_of_the_test(tmp_path: Path) -> None:
    passed(
        tmp_path,
        f"""
{CLIENT}
    def test_one(kafka_broker, kafka_bootstrap, kafka_topic):
        send(kafka_bootstrap, kafka_topic)
        assert [request for request in kafka_broker.requests if request.api == "Produce"]


    def test_two(kafka_broker):
        assert not [request for request in kafka_broker.requests if request.api == "Produce"]
""",
    )


IMPORTS = {
    "in_a_test_module": ("", "import kafka\n\n\ndef test_it(): pass\n"),
    "in_a_conftest": ("import kafka\n", "def test_it(): pass\n"),
    "in_a_test": ("", "def test_it():\n    import kafka\n"),
}


@pytest.mark.parametrize("where", IMPORTS)
def test_kafka_python_is_imported_where_warnings_are_errors(where: str, tmp_path: Path) -> None:
    conftest, tests = IMPORTS[where]
    (tmp_path / "conftest.py").write_text(conftest)
    passed(tmp_path, tests, "-W", "error")


def test_other_warnings_are_errors_still(tmp_path: Path) -> None:
    passed(
        tmp_path,
        """
    import importlib.resources, warnings
    import pytest


    def test_they_are():
        for text in ("read_text is deprecated", "open_text is deprecated"):
            with pytest.raises(DeprecationWarning):
                warnings.warn(text, DeprecationWarning)
""",
        "-W",
        "error",
    )
