"""The kbroker command, called in this process on the broker under test."""

from __future__ import annotations

import gc
import io
import json
import sys
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import pytest

from compat.harness.brokers import Server
from kbroker.cli import main


class Result(NamedTuple):
    exit_code: int
    stdout: str
    stderr: str

    @property
    def json(self) -> Any:
        return json.loads(self.stdout)

    @property
    def json_lines(self) -> list[Any]:
        return [json.loads(line) for line in self.stdout.splitlines()]


Run = Callable[..., Result]


@pytest.fixture
def run(
    kafka_server: Server, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> Iterator[Run]:
    """run("topic", "list", stdin=b"…"): with the address of the broker under test"""
    monkeypatch.setenv("KBROKER_BOOTSTRAP", kafka_server.bootstrap)

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
