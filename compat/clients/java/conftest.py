"""Kafka's own command-line tools, pointed at the broker under test."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from compat.clients.confluent.members import Members, produce
from compat.harness.brokers import Server
from compat.harness.tools import KafkaTools, ToolResult

Run = Callable[..., ToolResult]
# The tools that take their action before the address.
SUBCOMMANDS = frozenset({"kafka-cluster"})
PARTITIONS = 2
RECORDS = 20


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
    """new_topic(partitions=1, name=None, **configs with _ for .): creates this test's topic or another"""

    def create(partitions: int = 1, name: str | None = None, **configs: str) -> str:
        wanted = name or topic
        settings = [f"{config.replace('_', '.')}={value}" for config, value in configs.items()]
        options = [option for setting in settings for option in ("--config", setting)]
        run("kafka-topics", "--create", "--topic", wanted, "--partitions", str(partitions), *options)
        return wanted

    return create


@pytest.fixture
def group(unique: Callable[[str], str]) -> str:
    return unique("group")


@pytest.fixture
def records(kafka_server: Server, new_topic: Callable[..., str]) -> str:
    """A topic with ten records in each of two partitions."""
    topic = new_topic(partitions=PARTITIONS)
    produce(kafka_server.bootstrap, topic, PARTITIONS, [str(number).encode() for number in range(RECORDS)])
    return topic


@pytest.fixture
def members(kafka_server: Server, group: str) -> Iterator[Members]:
    """Live consumers of the group; closed at the end."""
    with Members(kafka_server.bootstrap, group) as members:
        yield members
