"""Kafka's own command-line tools, pointed at the broker under test."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from compat.conftest import Server
from compat.harness.tools import KafkaTools, ToolResult

Run = Callable[..., ToolResult]
# The tools that take their action before the address.
SUBCOMMANDS = frozenset({"kafka-cluster"})


@pytest.fixture
def run(kafka_server: Server, kafka_tools: KafkaTools) -> Run:
    """run("kafka-topics", "--list", stdin="", ok=True): with --bootstrap-server; the exit code is checked"""

    def run_tool(tool: str, *arguments: str, stdin: str = "", ok: bool = True) -> ToolResult:
        address = ("--bootstrap-server", kafka_server.bootstrap)
        if tool in SUBCOMMANDS:
            result = kafka_tools.run(tool, arguments[0], *address, *arguments[1:], stdin=stdin)
        else:
            result = kafka_tools.run(tool, *address, *arguments, stdin=stdin)
        assert (result.exit_code == 0) is ok, result
        return result

    return run_tool


@pytest.fixture
def json_file(tmp_path: Path) -> Callable[[Any], str]:
    """Writes a value to a file, returns its path."""

    def write(value: Any) -> str:
        path = tmp_path / f"{len(list(tmp_path.iterdir()))}.json"
        path.write_text(json.dumps(value))
        return str(path)

    return write


@pytest.fixture
def new_topic(run: Run, topic: str) -> Callable[..., str]:
    """new_topic(partitions=1, **configs with _ for .): creates this test's topic, returns its name"""

    def create(partitions: int = 1, **configs: str) -> str:
        settings = [f"{name.replace('_', '.')}={value}" for name, value in configs.items()]
        options = [option for setting in settings for option in ("--config", setting)]
        run("kafka-topics", "--create", "--topic", topic, "--partitions", str(partitions), *options)
        return topic

    return create
