"""kbroker in the environment of a project that needs another kafka-python than the commands, or none."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import venv
from pathlib import Path

import pytest

from tests.packaging.test_package import CLEAN, built

__all__ = ["built"]  # a fixture

pytestmark = pytest.mark.slow

OLD = "2.0.2"

PROJECT = """
import kafka
from kafka import KafkaConsumer, KafkaProducer


def test_its_clients_talk_to_the_broker(kafka_broker, kafka_bootstrap, kafka_topic):
    assert kafka.__version__ == "OLD"
    producer = KafkaProducer(bootstrap_servers=kafka_bootstrap)
    producer.send(kafka_topic, b"hello").get(timeout=20)
    producer.close()
    consumer = KafkaConsumer(
        kafka_topic, bootstrap_servers=kafka_bootstrap, group_id="g", auto_offset_reset="earliest"
    )
    assert next(consumer).value == b"hello"
    consumer.close()
    assert [record.value for record in kafka_broker.records(kafka_topic)] == [b"hello"]
""".replace("OLD", OLD)

NO_CLIENT = """
import importlib.util


def test_there_is_a_broker_and_no_client(kafka_broker, kafka_topic):
    assert importlib.util.find_spec("kafka") is None
    assert kafka_broker.records(kafka_topic) == []
"""


def pip(python: Path, *arguments: str) -> None:
    command = [sys.executable, "-m", "pip", "--python", str(python), *arguments, "--quiet"]
    subprocess.run([*command, "--disable-pip-version-check"], check=True, timeout=280)


@pytest.fixture(scope="module")
def old(built: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The python of an environment where pip had to find versions that suit both."""
    environment = tmp_path_factory.mktemp("old")
    venv.create(environment, with_pip=False)
    python = environment / "bin" / "python"
    (wheel,) = built.glob("*.whl")
    pip(python, "install", "--no-compile", str(wheel), f"kafka-python=={OLD}", "pytest")
    return python


@pytest.fixture(scope="module")
def without(old: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same environment, without any kafka-python."""
    environment = tmp_path_factory.mktemp("without") / "environment"
    shutil.copytree(old.parents[1], environment, symlinks=True)
    python = environment / "bin" / "python"
    pip(python, "uninstall", "--yes", "kafka-python")
    return python


def run(python: Path, *arguments: str, directory: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [python, "-m", *arguments],
        cwd=directory,
        env=CLEAN,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def suite(python: Path, tests: str, directory: Path) -> None:
    (directory / "test_project.py").write_text(tests)
    done = run(python, "pytest", "-q", "-p", "no:cacheprovider", str(directory), directory=directory)
    assert done.returncode == 0, done.stdout + done.stderr


def command(python: Path, directory: Path) -> subprocess.CompletedProcess[str]:
    """A command, and a broker of the same environment for it."""
    process = subprocess.Popen(
        [python, "-m", "kbroker", "serve", "--port", "0"],
        cwd=directory,
        env=CLEAN,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    try:
        address = process.stdout.readline().split("listening on ")[1].split(",")[0]
        assert run(python, "kbroker", "ping", "-b", address, directory=directory).returncode == 0
        return run(python, "kbroker", "topic", "list", "-b", address, directory=directory)
    finally:
        process.terminate()
        assert process.wait(30) == 0
        process.stdout.close()


def test_an_old_kafka_python_works_with_the_fixtures(old: Path, tmp_path: Path) -> None:
    suite(old, PROJECT, tmp_path)


def test_without_a_kafka_python_the_fixtures_work(without: Path, tmp_path: Path) -> None:
    suite(without, NO_CLIENT, tmp_path)


@pytest.mark.parametrize(("environment", "found"), [("old", f"this is {OLD}"), ("without", "there is none")])
def test_serve_works_and_a_command_says_in_a_line_what_to_install(
    environment: str, found: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    done = command(request.getfixturevalue(environment), tmp_path)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.endswith(os.linesep)
    (line,) = done.stderr.splitlines()
    assert found in line
    assert "pip install 'kafka-python>=" in line
