"""Records that are gone when Spark comes for them: failOnDataLoss says so or goes on."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

from compat.harness.waiting import eventually
from compat.spark.queries import Table, coordinates, error_of, values
from compat.spark.topics import Topic

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Frames = Callable[..., "DataFrame"]
NewTopic = Callable[..., Topic]


def numbers(start: int, end: int) -> list[str]:
    return [f"{n:05d}" for n in range(start, end)]


def by_delete_records(new_topic: NewTopic) -> tuple[Topic, Callable[[], None]]:
    topic = new_topic()
    return topic, lambda: topic.delete_records({0: 12})


def by_retention(new_topic: NewTopic) -> tuple[Topic, Callable[[], None]]:
    """Segments of one small batch each; retention by size removes all but the last ones."""
    topic = new_topic(segment_bytes="1048576", retention_bytes="1", file_delete_delay_ms="0")

    def lose() -> None:
        filler = ["x" * 400_000] * 3
        topic.produce(filler)
        eventually(topic.start_offset, lambda start: start > 10, seconds=60)

    return topic, lose


@pytest.mark.parametrize("lost", [by_delete_records, by_retention])
def test_a_stream_tells_lost_records_or_goes_on(
    stream: Frames, table: Table, new_topic: NewTopic, lost: Callable[..., tuple[Topic, Callable[[], None]]]
) -> None:
    topic, lose = lost(new_topic)
    topic.produce(numbers(0, 10))
    table.fill(stream(subscribe=topic))
    topic.produce(numbers(10, 20))
    lose()
    start = topic.start_offset()
    assert start > 10
    message = error_of(table.start(stream(subscribe=topic)))
    assert "failOnDataLoss" in message
    assert table.values() == numbers(0, 10)
    table.fill(stream(subscribe=topic, failOnDataLoss=False))
    survivors = [value for value in table.values() if not value.startswith("x")]
    assert survivors == [*numbers(0, 10), *numbers(start, 20)]


def test_a_batch_below_the_log_start_tells_it_or_goes_on(source: Frames, new_topic: NewTopic) -> None:
    topic = new_topic()
    topic.produce(numbers(0, 20))
    topic.delete_records({0: 8})
    assert values(source(subscribe=topic)) == numbers(8, 20), "earliest is the log start"
    start = {"startingOffsets": {topic.name: {"0": 2}}}
    with pytest.raises(Exception, match=r"(?i)failOnDataLoss|out of range"):
        values(source(subscribe=topic, failOnDataLoss=True, **start))
    assert coordinates(source(subscribe=topic, failOnDataLoss=False, **start)) == [
        (0, n, f"{n:05d}") for n in range(8, 20)
    ]


def test_a_topic_deleted_and_created_again_under_its_name(
    stream: Frames, table: Table, new_topic: NewTopic
) -> None:
    topic = new_topic()
    topic.produce(numbers(0, 10))
    table.fill(stream(subscribe=topic))
    topic.delete()
    topic.create()
    topic.produce(numbers(50, 53))
    message = error_of(table.start(stream(subscribe=topic)))
    assert "failOnDataLoss" in message or "offset" in message
    assert table.values() == numbers(0, 10)
