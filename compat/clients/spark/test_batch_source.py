"""spark.read.format("kafka"): which records a batch read returns."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka.admin import AdminClient

from compat.clients.spark.queries import coordinates, values
from compat.clients.spark.topics import Topic
from compat.harness.brokers import Server
from compat.harness.waiting import eventually

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Source = Callable[..., "DataFrame"]
NewTopic = Callable[..., Topic]
PARTITIONS, RECORDS = 3, 10


@pytest.fixture(scope="module")
def first_timestamp() -> int:
    """An hour ago: old enough to look for, young enough for every retention."""
    return int(time.time() * 1000) - 3_600_000


@pytest.fixture(scope="module")
def filled(
    kafka_server: Server,
    admin_of: Callable[[Server], AdminClient],
    unique: Callable[[str], str],
    first_timestamp: int,
) -> Topic:
    """Record n of partition p is "p/n", made n seconds after the first."""
    topic = Topic(unique("filled"), kafka_server.bootstrap, admin_of(kafka_server))
    topic.create(PARTITIONS)
    for partition in range(PARTITIONS):
        topic.produce(
            [f"{partition}/{n}" for n in range(RECORDS)],
            keys=[f"k{n}" for n in range(RECORDS)],
            partition=partition,
            timestamps=[first_timestamp + 1000 * n for n in range(RECORDS)],
        )
    return topic


def expected(*ranges: tuple[int, int, int]) -> list[tuple[int, int, str]]:
    """(partition, from, to) -> the rows"""
    return [(p, n, f"{p}/{n}") for p, start, end in ranges for n in range(start, end)]


EVERYTHING = expected((0, 0, 10), (1, 0, 10), (2, 0, 10))


def test_subscribe_reads_every_column(source: Source, filled: Topic, first_timestamp: int) -> None:
    rows = source(subscribe=filled).where("partition = 1").orderBy("offset").collect()
    assert [
        (r.topic, r.partition, r.offset, bytes(r.key), bytes(r.value), r.timestampType) for r in rows
    ] == [(filled.name, 1, n, f"k{n}".encode(), f"1/{n}".encode(), 0) for n in range(RECORDS)]
    assert [int(r.timestamp.timestamp() * 1000) for r in rows] == [
        first_timestamp + 1000 * n for n in range(RECORDS)
    ]


def test_subscribe_pattern(source: Source, filled: Topic) -> None:
    assert coordinates(source(subscribePattern=f"{filled.name[:-1]}.?$")) == EVERYTHING


def test_assign(source: Source, filled: Topic) -> None:
    assert coordinates(source(assign={filled.name: [0, 2]})) == expected((0, 0, 10), (2, 0, 10))


def test_explicit_offsets_with_earliest_and_latest_as_numbers(source: Source, filled: Topic) -> None:
    frame = source(
        subscribe=filled,
        startingOffsets={filled.name: {"0": 7, "1": -2, "2": 3}},
        endingOffsets={filled.name: {"0": -1, "1": 2, "2": 5}},
    )
    assert coordinates(frame) == expected((0, 7, 10), (1, 0, 2), (2, 3, 5))


def test_an_offset_beyond_the_end_fails_the_read(source: Source, filled: Topic) -> None:
    with pytest.raises(Exception, match=r"(?i)offset|fetch"):
        source(
            subscribe=filled,
            endingOffsets={filled.name: {"0": 99, "1": 0, "2": 0}},
            kafkaConsumer__pollTimeoutMs=2000,
        ).collect()


def test_global_timestamps(source: Source, filled: Topic, first_timestamp: int) -> None:
    frame = source(
        subscribe=filled, startingTimestamp=first_timestamp + 2500, endingTimestamp=first_timestamp + 5000
    )
    assert coordinates(frame) == expected((0, 3, 5), (1, 3, 5), (2, 3, 5))


def test_timestamps_per_partition(source: Source, filled: Topic, first_timestamp: int) -> None:
    frame = source(
        subscribe=filled,
        startingOffsetsByTimestamp={filled.name: {str(p): first_timestamp + 1000 * p for p in range(3)}},
        endingOffsetsByTimestamp={filled.name: {str(p): first_timestamp + 4000 for p in range(3)}},
    )
    assert coordinates(frame) == expected((0, 0, 4), (1, 1, 4), (2, 2, 4))


def test_a_timestamp_without_match_follows_the_strategy(
    source: Source, filled: Topic, first_timestamp: int
) -> None:
    later = first_timestamp + 10_000_000
    latest = source(subscribe=filled, startingTimestamp=later, startingOffsetsByTimestampStrategy="latest")
    assert coordinates(latest) == []
    with pytest.raises(Exception, match=r"(?i)no offset|timestamp"):
        source(
            subscribe=filled, startingTimestamp=later, startingOffsetsByTimestampStrategy="error"
        ).collect()
    until = source(subscribe=filled, endingTimestamp=later)
    assert coordinates(until) == EVERYTHING, "no match for the end means latest"


def test_min_partitions_splits_topic_partitions(source: Source, filled: Topic) -> None:
    frame = source(subscribe=filled, minPartitions=9)
    assert frame.rdd.getNumPartitions() >= 9
    assert coordinates(frame) == EVERYTHING


def test_headers_come_with_their_order_duplicates_and_nulls(source: Source, new_topic: NewTopic) -> None:
    topic = new_topic()
    headers = [("a", b"1"), ("a", b"2"), ("empty", b""), ("null", None)]
    topic.produce(["with"], headers=headers)
    topic.produce(["without"])
    rows = source(subscribe=topic, includeHeaders=True).orderBy("offset").collect()
    assert [(h.key, None if h.value is None else bytes(h.value)) for h in rows[0].headers] == headers
    assert rows[1].headers is None


def test_null_keys_and_values_stay_null(source: Source, new_topic: NewTopic) -> None:
    topic = new_topic()
    topic.produce(["", None, "x"], keys=[None, "tombstone", ""])
    rows = source(subscribe=topic).orderBy("offset").collect()
    assert [(r.key, r.value) for r in rows] == [(None, b""), (b"tombstone", None), (b"", b"x")]


@pytest.mark.parametrize("codec", ["gzip", "snappy", "lz4", "zstd"])
def test_compressed_batches(source: Source, new_topic: NewTopic, codec: str) -> None:
    topic = new_topic()
    sent = [f"{n:04d}{'x' * 200}" for n in range(500)]
    topic.produce(sent, compression_type=codec)
    assert values(source(subscribe=topic)) == sent


def test_several_topics_and_an_empty_one(source: Source, new_topic: NewTopic) -> None:
    one, two, empty = new_topic(), new_topic(2), new_topic()
    one.produce(["a"])
    two.produce(["b"], partition=1)
    rows = source(subscribe=f"{one},{two},{empty}").selectExpr("topic", "cast(value as string) v").collect()
    assert sorted((r.topic, r.v) for r in rows) == sorted([(one.name, "a"), (two.name, "b")])


def test_a_missing_topic_fails_the_read(source: Source, topic: str) -> None:
    with pytest.raises(Exception, match=r"(?i)UnknownTopicOrPartition|does not host"):
        source(subscribe=topic, fetchOffset__numRetries=1).collect()


@pytest.mark.parametrize("option", ["kafka.group.id", "groupIdPrefix"])
def test_group_ids(
    source: Source, filled: Topic, option: str, unique: Callable[[str], str], kafka_server: Server,
    admin_of: Callable[[Server], AdminClient],
) -> None:  # fmt: skip
    group = unique("group")
    assert coordinates(source(subscribe=filled, **{option: group})) == EVERYTHING
    groups = admin_of(kafka_server).list_consumer_groups().result(60).valid
    assert not [each for each in groups if each.group_id.startswith(group)], "the connector never joins"


def test_deprecated_offset_fetching(
    spark: SparkSession, source: Source, filled: Topic, first_timestamp: int
) -> None:
    """The connector then is a member of a classic group and asks a consumer for offsets."""
    option = "spark.sql.streaming.kafka.useDeprecatedOffsetFetching"
    spark.conf.set(option, "true")
    try:
        assert coordinates(source(subscribe=filled)) == EVERYTHING
        assert coordinates(source(assign={filled.name: [1]})) == expected((1, 0, 10))
        frame = source(subscribePattern=f"{filled.name}$", startingTimestamp=first_timestamp + 8000)
        assert coordinates(frame) == expected((0, 8, 10), (1, 8, 10), (2, 8, 10))
    finally:
        spark.conf.unset(option)


def test_a_compacted_topic_with_gaps(source: Source, new_topic: NewTopic) -> None:
    topic = new_topic(
        cleanup_policy="compact", min_cleanable_dirty_ratio="0.01", segment_ms="100", delete_retention_ms="0"
    )
    sent = [f"v{n}" for n in range(200)]
    topic.produce(sent, keys=[f"k{n % 5}" for n in range(200)])
    topic.produce(["tail"], keys=["tail"])

    def survivors() -> list[Any]:
        # A record more, so that the segment before it is rolled and may be cleaned.
        topic.produce(["tail"], keys=["tail"])
        return [row for row in coordinates(source(subscribe=topic)) if row[2] != "tail"]

    rows = eventually(survivors, lambda found: len(found) == 5, seconds=60)
    assert rows == [(0, n, f"v{n}") for n in range(195, 200)]
