"""Records that are gone when Spark comes for them: failOnDataLoss says so or goes on."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

from compat.clients.spark.queries import Table, coordinates, error_of, java_causes, values, wait_for_rows
from compat.clients.spark.topics import Topic
from compat.harness.waiting import eventually

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Frames = Callable[..., "DataFrame"]
NewTopic = Callable[..., Topic]
ILLEGAL_STATE = "org.apache.spark.sql.kafka010.KafkaIllegalStateException"
OUT_OF_RANGE = "org.apache.kafka.clients.consumer.OffsetOutOfRangeException"
UNREADABLE = (ILLEGAL_STATE, "KAFKA_DATA_LOSS.COULD_NOT_READ_OFFSET_RANGE")
WENT_BACK = (ILLEGAL_STATE, "KAFKA_DATA_LOSS.PARTITION_OFFSET_CHANGED")


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
    causes = java_causes(error_of(table.start(stream(subscribe=topic))))
    assert causes[1:] == [UNREADABLE, (OUT_OF_RANGE, None)]
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
    with pytest.raises(Exception, match="KafkaIllegalStateException") as caught:
        values(source(subscribe=topic, failOnDataLoss=True, **start))
    assert java_causes(caught.value) == [UNREADABLE, (OUT_OF_RANGE, None)]
    assert coordinates(source(subscribe=topic, failOnDataLoss=False, **start)) == [
        (0, n, f"{n:05d}") for n in range(8, 20)
    ]


# A topic deleted and created again under its name. Spark knows offsets, not topic ids: it notices only that
# the end has gone back.


def created_again(topic: Topic, count: int) -> None:
    """With values from 50 on."""
    topic.delete()
    topic.create()
    topic.produce(numbers(50, 50 + count))


@pytest.mark.parametrize("count", [3, 10, 15])
def test_a_stream_over_a_topic_created_again(
    stream: Frames, table: Table, new_topic: NewTopic, count: int
) -> None:
    """It had ten records: with fewer the loss is seen, with as many or more it looks like the old topic."""
    topic = new_topic()
    topic.produce(numbers(0, 10))
    table.fill(stream(subscribe=topic))
    created_again(topic, count)
    if count < 10:
        causes = java_causes(error_of(table.start(stream(subscribe=topic))))
        assert causes[1:] == [WENT_BACK]
    else:
        table.fill(stream(subscribe=topic))
    unseen = numbers(60, 50 + count)
    assert table.values() == [*numbers(0, 10), *unseen]
    table.fill(stream(subscribe=topic, failOnDataLoss=False))
    assert table.values() == [*numbers(0, 10), *unseen], "it goes on from the end"
    topic.produce(numbers(80, 90))
    table.fill(stream(subscribe=topic))
    assert table.values() == [*numbers(0, 10), *unseen, *numbers(80, 90)]


def test_a_running_stream_goes_on_over_a_topic_created_again(
    stream: Frames, table: Table, new_topic: NewTopic, running: Callable[[Any], Any]
) -> None:
    topic = new_topic()
    topic.produce(numbers(0, 10))
    frame = stream(subscribe=topic, failOnDataLoss=False, kafka__metadata__max__age__ms=200)
    query = running(table.start(frame, processingTime="100 milliseconds"))
    wait_for_rows(table, 10)
    created_again(topic, 3)
    eventually(lambda: end_offset(query, topic), lambda end: end is not None and end <= 3, seconds=60)
    topic.produce(numbers(80, 90))
    found = eventually(table.values, lambda rows: rows[-1] == "00089", seconds=60)
    # The first three are read if Spark saw the new topic while it was still empty.
    assert [value for value in found if value not in numbers(50, 53)] == [*numbers(0, 10), *numbers(80, 90)]
    assert len(set(found)) == len(found)


def end_offset(query: Any, topic: Topic) -> int | None:
    """How far a running query is with partition 0; its first report comes after its first rows."""
    known = [text for report in query.recentProgress if (text := report["sources"][0]["endOffset"])]
    return int(json.loads(known[-1])[topic.name]["0"]) if known else None


@pytest.mark.parametrize("told", [True, False])
def test_a_batch_over_a_topic_created_again(source: Frames, new_topic: NewTopic, told: bool) -> None:
    """With offsets kept from the old topic: those that the new one has, give its records."""
    topic = new_topic()
    topic.produce(numbers(0, 10))
    created_again(topic, 3)

    def read(start: int, **more: Any) -> list[tuple[int, int, str]]:
        offsets = {"startingOffsets": {topic.name: {"0": start}}, **more}
        return coordinates(source(subscribe=topic, failOnDataLoss=told, **offsets))

    new = [(0, n, f"{50 + n:05d}") for n in range(3)]
    assert read(0) == new
    assert read(1, endingOffsets={topic.name: {"0": 2}}) == new[1:2]
    assert read(3) == []
    with pytest.raises(Exception, match="Beginning offset 5 is after the ending offset 3") as caught:
        read(5)
    assert java_causes(caught.value)[-1] == ("java.lang.AssertionError", None)
