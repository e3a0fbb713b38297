"""Kafka's own tools, and a topic with records, pointed at the broker under test."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from compat.conftest import Server
from compat.groups_consumer.members import Members, produce
from compat.java.conftest import json_file, new_topic, run

__all__ = ["group", "json_file", "members", "new_topic", "records", "run"]

PARTITIONS = 2
RECORDS = 20


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
