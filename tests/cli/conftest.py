"""A broker, and the kbroker command called in this process on it."""

from __future__ import annotations

import gc
import io
import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import pytest

from kbroker.cli import main
from kbroker.testing import KafkaBroker


class Result(NamedTuple):
    exit_code: int
    stdout: str
    stderr: str

    @property
    def json(self) -> Any:
        return json.loads(self.stdout)


Run = Callable[..., Result]


@contextmanager
def running(*arguments: str, **options: Any) -> Iterator[subprocess.Popen[str]]:
    """The kbroker command as a process that does not outlive the test, however that ends."""
    command = [sys.executable, "-m", "kbroker", *arguments]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, bufsize=1, **options) as process:
        try:
            yield process
        finally:
            process.kill()


@pytest.fixture
def broker() -> Iterator[KafkaBroker]:
    with KafkaBroker() as running:
        yield running


@pytest.fixture
def run(
    broker: KafkaBroker, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> Iterator[Run]:
    """run("topic", "list", stdin=b"…"): with the address of the broker"""
    monkeypatch.setenv("KBROKER_BOOTSTRAP", broker.bootstrap_servers)

    def call(*arguments: str, stdin: bytes = b"") -> Result:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        capfd.readouterr()
        try:
            code = main(arguments)
        except SystemExit as error:
            code = int(error.code or 0)
        sys.stdout.flush()
        return Result(code, *capfd.readouterr())

    yield call
    gc.collect()  # what kafka-python leaves to the garbage collector goes while this test is to blame
