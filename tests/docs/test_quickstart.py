"""Every snippet of docs/quickstart.md runs and prints what it says.

Snippets in other languages run where their tools are. Those that first download modules and compile for
minutes (franz-go) only where NETWORK_TESTS is set.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from compat.harness import jars, java
from kbroker.testing import KafkaBroker
from tests.support.inner_pytest import PYTEST

PAGE = Path(__file__).parents[2] / "docs" / "quickstart.md"
ADDRESS = "127.0.0.1:9092"
PYTHON = ("kafka-python", "confluent-kafka", "aiokafka", "FastStream")


def snippets() -> dict[tuple[str, str], str]:
    """(section, language) → snippet"""
    found = {}
    for section in PAGE.read_text().split("\n## ")[1:]:
        title = section.splitlines()[0]
        for language, text in re.findall(r"```(\w+)\n(.*?)```", section, re.DOTALL):
            found[title, language] = text
    return found


SNIPPETS = snippets()


@pytest.fixture
def broker() -> Iterator[KafkaBroker]:
    with KafkaBroker() as running:
        yield running


def run(command: list[str], directory: Path, seconds: float = 120, **environment: str) -> str:
    done = subprocess.run(
        command,
        cwd=directory,
        capture_output=True,
        text=True,
        timeout=seconds,
        check=False,
        env={**os.environ, **environment},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def for_broker(broker: KafkaBroker, section: str, language: str) -> str:
    snippet = SNIPPETS[section, language]
    assert ADDRESS in snippet
    return snippet.replace(ADDRESS, broker.bootstrap_servers)


def test_no_snippet_is_left_out() -> None:
    tested = {(section, "python") for section in (*PYTHON, "Spark", "In your tests")}
    tested |= {("Java", "java"), ("Spring Boot", "java"), ("kafkajs", "javascript"), ("franz-go", "go")}
    assert set(SNIPPETS) == tested | {("The command line", "sh")}


def test_the_command_line(broker: KafkaBroker, tmp_path: Path) -> None:
    kbroker = f"{shlex.quote(sys.executable)} -m kbroker"
    script = SNIPPETS["The command line", "sh"].replace("kbroker", kbroker)
    assert run(["bash", "-ec", script], tmp_path, KBROKER_BOOTSTRAP=broker.bootstrap_servers) == "hello\n"


@pytest.mark.parametrize("section", PYTHON)
def test_python_clients(broker: KafkaBroker, section: str, tmp_path: Path) -> None:
    script = for_broker(broker, section, "python")
    assert "hello\n" in run([sys.executable, "-c", script], tmp_path)


@pytest.mark.java
def test_java(broker: KafkaBroker, tmp_path: Path) -> None:
    source = tmp_path / "Quickstart.java"
    # The class file is cached by content: the address comes in from outside.
    source.write_text(SNIPPETS["Java", "java"].replace(f'"{ADDRESS}"', 'System.getProperty("servers")'))
    classpath = jars.classpath("kafka")
    classes = java.compile_sources([source], "quickstart", classpath)
    command = java.command(
        "Quickstart",
        classpath=f"{classes}{os.pathsep}{classpath}",
        properties={
            "servers": broker.bootstrap_servers,
            "log4j2.configurationFile": (Path(jars.__file__).with_name("log4j2.xml")).as_uri(),
        },
    )
    assert run(command, tmp_path).endswith("hello\n")


@pytest.mark.java
def test_spring_compiles(tmp_path: Path) -> None:
    source = tmp_path / "SpringQuickstart.java"
    source.write_text(SNIPPETS["Spring Boot", "java"])
    classpath = os.pathsep.join([jars.classpath("spring"), jars.classpath("kafka")])
    assert (java.compile_sources([source], "spring", classpath) / "SpringQuickstart.class").exists()


@pytest.fixture(scope="session")
def node_modules(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory in which kafkajs is installed."""
    return install_kafkajs(tmp_path_factory.mktemp("node"))


def install_kafkajs(directory: Path) -> Path:
    npm = shutil.which("npm")
    if npm is None or shutil.which("node") is None:
        pytest.skip("node and npm are not installed")
    command = [npm, "install", "--no-audit", "--no-fund", "--silent", "kafkajs@2.2.4"]
    try:
        done = subprocess.run(
            command, cwd=directory, capture_output=True, text=True, timeout=120, check=False
        )
    except subprocess.TimeoutExpired:
        pytest.skip("npm cannot install kafkajs here: no answer from its registry")
    if done.returncode != 0:
        pytest.skip(f"npm cannot install kafkajs here: {done.stderr.strip()[:200]}")
    return directory


def test_kafkajs(broker: KafkaBroker, node_modules: Path) -> None:
    script = node_modules / "quickstart.mjs"
    script.write_text(for_broker(broker, "kafkajs", "javascript"))
    said = run(["node", str(script)], node_modules, KAFKAJS_NO_PARTITIONER_WARNING="1")
    assert said.endswith("hello\n")


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("go") is None, reason="go is not installed")
@pytest.mark.skipif("NETWORK_TESTS" not in os.environ, reason="NETWORK_TESTS is not set")
def test_franz_go(broker: KafkaBroker, tmp_path: Path) -> None:
    (tmp_path / "main.go").write_text(for_broker(broker, "franz-go", "go"))
    run(["go", "mod", "init", "quickstart"], tmp_path)
    run(["go", "mod", "tidy"], tmp_path)
    run(["go", "build", "-o", "quickstart", "."], tmp_path, seconds=280)
    assert run(["./quickstart"], tmp_path) == "hello\n"


@pytest.mark.spark
@pytest.mark.slow
def test_spark(broker: KafkaBroker, tmp_path: Path) -> None:
    pytest.importorskip("pyspark", reason="pyspark is not installed")
    from kbroker.pipeline import jars as spark_jars
    from kbroker.pipeline import java as spark_java
    from kbroker.pipeline.session import SHORT_LIVED

    # The pinned jars instead of a download by Spark.
    packages = '"spark.jars.packages", "org.apache.spark:spark-sql-kafka-0-10_2.13:4.0.0"'
    script = for_broker(broker, "Spark", "python")
    assert packages in script
    script = script.replace(packages, f'"spark.jars", "{",".join(map(str, spark_jars.provide()))}"')
    settings = {"JAVA_HOME": str(spark_java.java_home()), "PYSPARK_PYTHON": sys.executable}
    settings["JAVA_TOOL_OPTIONS"] = SHORT_LIVED
    said = run([sys.executable, "-c", script], tmp_path, SPARK_LOCAL_IP="127.0.0.1", **settings)
    assert said.endswith("hello\n")


def test_the_fixtures(tmp_path: Path) -> None:
    test = tmp_path / "test_greeting.py"
    test.write_text(SNIPPETS["In your tests", "python"])
    said = run([*PYTEST, str(test)], tmp_path)
    assert "1 passed" in said
