"""Real sizes, each on its own: make compat-spark-full."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

from compat.clients.spark.queries import Table
from compat.clients.spark.topics import Topic
from compat.harness.brokers import Server

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Frames = Callable[..., "DataFrame"]
NewTopic = Callable[..., Topic]
pytestmark = [pytest.mark.spark_full, pytest.mark.timeout(900)]


def write(frame: DataFrame, server: Server, topic: Topic, **options: str) -> None:
    writer = frame.write.format("kafka").option("kafka.bootstrap.servers", server.bootstrap)
    writer.options(**options).option("topic", topic.name).save()


def test_five_million_rows_of_100_bytes(
    spark: SparkSession, kafka_server: Server, source: Frames, new_topic: NewTopic
) -> None:
    rows = 5_000_000
    topic = new_topic(4)
    write(spark.range(rows).selectExpr("rpad(cast(id as string), 100, ' ') value"), kafka_server, topic)
    numbers = source(subscribe=topic).selectExpr("cast(trim(cast(value as string)) as bigint) n")
    (found,) = numbers.selectExpr("count(*) rows", "count(distinct n) different", "sum(n) total").collect()
    assert (found.rows, found.different, found.total) == (rows, rows, rows * (rows - 1) // 2)


def test_thirty_two_partitions(
    spark: SparkSession, kafka_server: Server, stream: Frames, new_topic: NewTopic, table: Table
) -> None:
    topic = new_topic(32)
    frame = spark.range(32_000).selectExpr("cast(id % 32 as int) partition", "lpad(id, 5, '0') value")
    write(frame, kafka_server, topic)
    table.fill(stream(subscribe=topic, maxOffsetsPerTrigger=10_000))
    assert table.values() == [f"{n:05d}" for n in range(32_000)]


def test_a_thousand_rows_of_one_megabyte(
    spark: SparkSession, kafka_server: Server, source: Frames, new_topic: NewTopic
) -> None:
    rows, size = 1000, 1_000_000
    topic = new_topic(2, max_message_bytes="2097152")
    frame = spark.range(rows).selectExpr(f"concat(lpad(id, 8, '0'), repeat('x', {size - 8})) value")
    write(frame, kafka_server, topic, **{"kafka.max.request.size": "2097152"})
    limits = {"kafka.max.partition.fetch.bytes": "2097152"}
    lengths = source(subscribe=topic, **limits).selectExpr("length(value) n", "substring(value, 1, 8) id")
    (found,) = lengths.selectExpr("count(distinct id) rows", "min(n) shortest", "max(n) longest").collect()
    assert (found.rows, found.shortest, found.longest) == (rows, size, size)
