"""df.write and df.writeStream to format("kafka")."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from compat.clients.spark.queries import coordinates, values
from compat.clients.spark.topics import Topic
from compat.harness.brokers import Server
from compat.harness.waiting import eventually

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Frames = Callable[..., "DataFrame"]
NewTopic = Callable[..., Topic]


def numbers(start: int, end: int) -> list[str]:
    return [f"{n:05d}" for n in range(start, end)]


@pytest.fixture
def write(kafka_server: Server) -> Callable[..., None]:
    """write(frame, **options): a batch write"""

    def save(frame: DataFrame, **options: Any) -> None:
        writer = frame.write.format("kafka").option("kafka.bootstrap.servers", kafka_server.bootstrap)
        writer.options(**{name: str(value) for name, value in options.items()}).save()

    return save


def test_the_topic_option(spark: SparkSession, write: Any, source: Frames, new_topic: NewTopic) -> None:
    topic = new_topic(3)
    frame = spark.range(100).selectExpr("cast(id % 7 as string) key", "lpad(id, 5, '0') value")
    write(frame, topic=topic)
    rows = source(subscribe=topic).selectExpr("cast(key as string) k", "cast(value as string) v", "partition")
    found = rows.collect()
    assert sorted((r.k, r.v) for r in found) == sorted((str(n % 7), f"{n:05d}") for n in range(100))
    homes = {(r.k, r.partition) for r in found}
    assert len(homes) == 7, "one key, one partition"


def test_the_topic_column_wins_per_row(
    spark: SparkSession, write: Any, source: Frames, new_topic: NewTopic
) -> None:
    even, odd = new_topic(), new_topic()
    write(spark.range(10).selectExpr(f"if(id % 2 = 0, '{even}', '{odd}') topic", "cast(id as string) value"))
    assert sorted(values(source(subscribe=even))) == ["0", "2", "4", "6", "8"]
    assert sorted(values(source(subscribe=odd))) == ["1", "3", "5", "7", "9"]


def test_the_partition_column(spark: SparkSession, write: Any, source: Frames, new_topic: NewTopic) -> None:
    topic = new_topic(4)
    frame = spark.range(8).selectExpr("cast(id as string) value", "cast(id % 4 as int) partition")
    write(frame, topic=topic)
    assert sorted((p, v) for p, _, v in coordinates(source(subscribe=topic))) == sorted(
        (n % 4, str(n)) for n in range(8)
    )


def test_headers_and_null_keys_and_values(
    spark: SparkSession, write: Any, source: Frames, new_topic: NewTopic
) -> None:
    topic = new_topic()
    write(
        spark.sql(
            "select cast(null as binary) key, cast(null as binary) value, "
            "array(named_struct('key', 'a', 'value', cast('1' as binary)), "
            "named_struct('key', 'b', 'value', cast(null as binary))) headers"
        ),
        topic=topic,
    )
    (row,) = source(subscribe=topic, includeHeaders=True).collect()
    assert (row.key, row.value) == (None, None)
    assert [(h.key, h.value) for h in row.headers] == [("a", b"1"), ("b", None)]


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_codecs(spark: SparkSession, write: Any, source: Frames, new_topic: NewTopic, codec: str) -> None:
    topic = new_topic()
    frame = spark.range(300).coalesce(1).selectExpr("concat(lpad(id, 5, '0'), repeat('x', 100)) value")
    write(frame, topic=topic, **{"kafka.compression.type": codec})
    assert values(source(subscribe=topic)) == [number + "x" * 100 for number in numbers(0, 300)]


def test_a_missing_topic_fails_the_write(spark: SparkSession, write: Any, topic: str) -> None:
    with pytest.raises(Exception, match=r"(?i)not present in metadata|TimeoutException"):
        write(spark.sql("select 'x' value"), topic=topic, **{"kafka.max.block.ms": 2000})


def test_a_stream_from_topic_to_topic(
    stream: Frames, source: Frames, new_topic: NewTopic, tmp_path: Path
) -> None:
    origin, target = new_topic(2), new_topic(2)
    origin.produce(numbers(0, 30), headers=[("h", b"1")])
    origin.produce(numbers(30, 60), partition=1)
    frame = stream(subscribe=origin, includeHeaders=True).selectExpr(
        "key", "upper(cast(value as string)) value", "headers", "partition", f"'{target}' topic"
    )
    query = start_copy(frame, target, tmp_path, availableNow=True)
    query.awaitTermination()
    rows = source(subscribe=target, includeHeaders=True).collect()
    assert sorted((r.partition, r.value.decode()) for r in rows) == [
        *((0, number) for number in numbers(0, 30)),
        *((1, number) for number in numbers(30, 60)),
    ]
    assert all(bytes(r.headers[0].value) == b"1" for r in rows if r.partition == 0)


def test_a_broker_restart_in_the_middle_of_a_stream(
    kafka_server: Server, stream: Frames, source: Frames, new_topic: NewTopic, tmp_path: Path
) -> None:
    """Copied in small batches while the broker is killed and started again: every record arrives."""
    origin, target = new_topic(), new_topic()
    origin.produce(numbers(0, 300))
    frame = stream(subscribe=origin, maxOffsetsPerTrigger=30).select("value")
    query = start_copy(frame, target, tmp_path, processingTime="200 milliseconds")
    try:
        eventually(target.end_offset, lambda end: end >= 60, seconds=60)
        kafka_server.kill()
        kafka_server.start_again()
        eventually(target.end_offset, lambda end: end >= 300, seconds=90)
        assert query.exception() is None
    finally:
        query.stop()
    found = values(source(subscribe=target))
    assert sorted(set(found)) == numbers(0, 300)


def start_copy(frame: DataFrame, target: Topic, checkpoint: Path, **trigger: Any) -> Any:
    writer = frame.writeStream.format("kafka").option("kafka.bootstrap.servers", target.bootstrap)
    writer = writer.option("topic", target.name).option("checkpointLocation", str(checkpoint))
    return writer.trigger(**trigger).start()
