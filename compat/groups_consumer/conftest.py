"""confluent-kafka consumers and Kafka's own tools, pointed at the broker under test."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from compat.conftest import Server
from compat.groups_consumer.members import QUIET, Members
from compat.harness.tools import KafkaTools, ToolResult

Run = Callable[..., ToolResult]


@pytest.fixture
def admin(kafka_server: Server) -> AdminClient:
    return AdminClient({"bootstrap.servers": kafka_server.bootstrap, **QUIET})


@pytest.fixture
def new_topic(admin: AdminClient) -> Callable[[str, int], str]:
    def create(name: str, partitions: int) -> str:
        (future,) = admin.create_topics([NewTopic(name, partitions, 1)]).values()
        future.result(30)
        return name

    return create


@pytest.fixture
def members(kafka_server: Server, unique: Callable[[str], str]) -> Iterator[Members]:
    """Consumers of one group of this test's own; closed at the end."""
    with Members(kafka_server.bootstrap, unique("group")) as members:
        yield members


@pytest.fixture
def run(kafka_server: Server, kafka_tools: KafkaTools) -> Run:
    """run("kafka-groups", "--list"): with --bootstrap-server; the exit code is checked"""

    def run_tool(tool: str, *arguments: str) -> ToolResult:
        result = kafka_tools.run(tool, "--bootstrap-server", kafka_server.bootstrap, *arguments)
        assert result.exit_code == 0, result
        return result

    return run_tool
