"""Reads over open, committed and aborted transactions; their markers leave gaps in the offsets."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import pytest

from compat.clients.spark.queries import Table, coordinates, values
from compat.clients.spark.topics import Topic

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Frames = Callable[..., "DataFrame"]
COMMITTED = {"kafka.isolation.level": "read_committed"}


@pytest.fixture
def transactions(new_topic: Callable[..., Topic]) -> Iterator[tuple[Topic, Any]]:
    """Offsets: 0-2 committed, 3 marker, 4-6 aborted, 7 marker, 8 outside any, 9-10 open."""
    topic = new_topic()
    topic.produce_transaction(["c0", "c1", "c2"], transactional_id=f"{topic}-a")
    topic.produce_transaction(["a0", "a1", "a2"], transactional_id=f"{topic}-a", end="abort")
    topic.produce(["plain"])
    holder = topic.produce_transaction(["o0", "o1"], transactional_id=f"{topic}-b", end="open")
    yield topic, holder
    holder.abort_transaction(60)


def test_read_committed_stops_at_the_last_stable_offset(
    source: Frames, transactions: tuple[Topic, Any]
) -> None:
    topic, _ = transactions
    committed = coordinates(source(subscribe=topic, **COMMITTED))
    assert committed == [(0, 0, "c0"), (0, 1, "c1"), (0, 2, "c2"), (0, 8, "plain")]


def test_read_uncommitted_sees_everything_but_the_markers(
    source: Frames, transactions: tuple[Topic, Any]
) -> None:
    topic, _ = transactions
    assert values(source(subscribe=topic)) == ["c0", "c1", "c2", "a0", "a1", "a2", "plain", "o0", "o1"]


def test_a_stream_reads_a_transaction_once_it_is_committed(
    stream: Frames, table: Table, new_topic: Callable[..., Topic]
) -> None:
    topic = new_topic()
    topic.produce_transaction(["c0", "c1"], transactional_id=f"{topic}-a")
    holder = topic.produce_transaction(["o0"], transactional_id=f"{topic}-b", end="open")
    frame = stream(subscribe=topic, **COMMITTED)
    table.fill(frame)
    assert table.values() == ["c0", "c1"]
    holder.commit_transaction(60)
    topic.produce_transaction(["a0"], transactional_id=f"{topic}-a", end="abort")
    table.fill(frame)
    assert table.values() == ["c0", "c1", "o0"]


def test_a_topic_of_nothing_but_aborted_records_is_an_empty_read(
    source: Frames, new_topic: Callable[..., Topic]
) -> None:
    topic = new_topic()
    topic.produce_transaction(["a0", "a1"], transactional_id=f"{topic}-a", end="abort")
    assert values(source(subscribe=topic, **COMMITTED)) == []
