"""spark.readStream.format("kafka"): triggers, limits per batch, and topics that grow while a query runs."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from compat.clients.spark.queries import Table, batches, values, wait_for_rows
from compat.clients.spark.topics import Topic
from compat.harness.waiting import eventually

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Frames = Callable[..., "DataFrame"]
NewTopic = Callable[..., Topic]
Running = Callable[[Any], Any]
# New topics and partitions are found when the client refreshes its metadata.
QUICK_METADATA = {"kafka.metadata.max.age.ms": "200"}


def numbers(start: int, end: int) -> list[str]:
    return [f"{n:05d}" for n in range(start, end)]


def test_available_now_continues_from_its_checkpoint(
    stream: Frames, table: Table, new_topic: NewTopic
) -> None:
    topic = new_topic(2)
    topic.produce(numbers(0, 50))
    topic.produce(numbers(50, 100), partition=1)
    frame = stream(subscribe=topic)
    table.fill(frame)
    assert table.values() == numbers(0, 100)
    topic.produce(numbers(100, 120), partition=1)
    query = table.fill(frame)
    assert batches(query) == [20]
    assert table.values() == numbers(0, 120)


def test_max_offsets_per_trigger_bounds_every_batch(
    stream: Frames, table: Table, new_topic: NewTopic
) -> None:
    topic = new_topic(2)
    topic.produce(numbers(0, 30))
    topic.produce(numbers(30, 60), partition=1)
    query = table.fill(stream(subscribe=topic, maxOffsetsPerTrigger=20))
    assert batches(query) == [20, 20, 20]
    assert table.values() == numbers(0, 60)


def test_min_offsets_per_trigger_waits_for_rows_or_for_the_delay(
    stream: Frames, table: Table, new_topic: NewTopic, running: Running
) -> None:
    topic = new_topic()
    topic.produce(numbers(0, 5))
    frame = stream(subscribe=topic, minOffsetsPerTrigger=10, maxTriggerDelay="6s")
    query = running(table.start(frame, processingTime="100 milliseconds"))
    wait_for_rows(table, 5)
    topic.produce(numbers(5, 8))
    topic.produce(numbers(8, 20))
    wait_for_rows(table, 20)
    topic.produce(numbers(20, 23))
    sent = time.monotonic()
    wait_for_rows(table, 23)
    assert time.monotonic() - sent > 1, "three rows are too few: they wait for the delay"
    eventually(lambda: sum(batches(query)), lambda count: count == 23)


def test_processing_time_picks_up_new_records(
    stream: Frames, table: Table, new_topic: NewTopic, running: Running
) -> None:
    topic = new_topic()
    query = running(table.start(stream(subscribe=topic), processingTime="100 milliseconds"))
    for start in (0, 10, 20):
        topic.produce(numbers(start, start + 10))
        wait_for_rows(table, start + 10)
    assert table.values() == numbers(0, 30)
    eventually(lambda: len(batches(query)), lambda count: count >= 3)


def test_continuous_processing_copies_topic_to_topic(
    stream: Frames, source: Frames, new_topic: NewTopic, running: Running, tmp_path: Any
) -> None:
    origin, target = new_topic(), new_topic()
    origin.produce(numbers(0, 20))
    writer = stream(subscribe=origin).select("key", "value").writeStream.format("kafka")
    writer = writer.option("kafka.bootstrap.servers", target.bootstrap).option("topic", target.name)
    writer = writer.option("checkpointLocation", str(tmp_path)).trigger(continuous="500 milliseconds")
    running(writer.start())
    eventually(target.end_offset, lambda end: end >= 20, seconds=60)
    origin.produce(numbers(20, 30))
    eventually(target.end_offset, lambda end: end >= 30, seconds=60)
    assert values(source(subscribe=target)) == numbers(0, 30)


def test_partitions_added_while_a_query_runs_are_read_from_their_start(
    stream: Frames, table: Table, new_topic: NewTopic, running: Running
) -> None:
    topic = new_topic()
    topic.produce(numbers(0, 10))
    frame = stream(subscribe=topic, **QUICK_METADATA)
    running(table.start(frame, processingTime="100 milliseconds"))
    wait_for_rows(table, 10)
    topic.add_partitions(3)
    topic.produce(numbers(10, 20), partition=1, topic_metadata_refresh_interval_ms=100)
    topic.produce(numbers(20, 30), partition=2, topic_metadata_refresh_interval_ms=100)
    assert wait_for_rows(table, 30) == numbers(0, 30)


def test_a_topic_created_later_joins_a_pattern(
    stream: Frames, table: Table, new_topic: NewTopic, running: Running
) -> None:
    first = new_topic()
    first.produce(numbers(0, 5))
    frame = stream(subscribePattern=f"{first}.*", **QUICK_METADATA)
    running(table.start(frame, processingTime="100 milliseconds"))
    wait_for_rows(table, 5)
    new_topic(name=f"{first}-later").produce(numbers(5, 10))
    assert wait_for_rows(table, 10) == numbers(0, 10)


def test_starting_offsets_by_timestamp(stream: Frames, table: Table, new_topic: NewTopic) -> None:
    topic = new_topic(2)
    hour_ago = int(time.time() * 1000) - 3_600_000
    for partition in (0, 1):
        sent = numbers(10 * partition, 10 * partition + 10)
        topic.produce(sent, partition=partition, timestamps=[hour_ago + 1000 * n for n in range(10)])
    frame = stream(
        subscribe=topic, startingOffsetsByTimestamp={topic.name: {"0": hour_ago + 8000, "1": hour_ago + 9000}}
    )
    table.fill(frame)
    assert table.values() == [*numbers(8, 10), *numbers(19, 20)]


def test_a_stream_that_starts_at_the_latest_offset_reads_only_what_comes_after(
    spark: SparkSession, stream: Frames, table: Table, new_topic: NewTopic
) -> None:
    topic = new_topic()
    topic.produce(numbers(0, 10))
    frame = stream(subscribe=topic, startingOffsets="latest")
    table.fill(frame)
    topic.produce(numbers(10, 15))
    table.fill(frame)
    assert table.values() == numbers(10, 15)


def test_a_stream_with_deprecated_offset_fetching(
    spark: SparkSession, stream: Frames, table: Table, new_topic: NewTopic
) -> None:
    option = "spark.sql.streaming.kafka.useDeprecatedOffsetFetching"
    topic = new_topic(2)
    topic.produce(numbers(0, 10))
    topic.produce(numbers(10, 20), partition=1)
    spark.conf.set(option, "true")
    try:
        table.fill(stream(subscribe=topic))
    finally:
        spark.conf.unset(option)
    assert table.values() == numbers(0, 20)
