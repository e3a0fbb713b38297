"""Kafka Streams' WordCountDemo with exactly_once_v2: killed and started again, it counts every word once."""

from __future__ import annotations

import random
import struct
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from compat.clients.streams.word_count import INPUT, OUTPUT, WordCount
from compat.harness.brokers import Server
from compat.harness.waiting import eventually

pytestmark = pytest.mark.java

PARTITIONS = 2
WORDS = ("kafka", "streams", "counts", "every", "word", "exactly", "once", "whatever", "happens", "to", "it")
LINES = 800


@pytest.fixture
def word_count(kafka_server: Server, unique, tmp_path: Path) -> Iterator[WordCount]:
    admin = AdminClient({"bootstrap.servers": kafka_server.bootstrap})
    for created in admin.create_topics(
        [NewTopic(INPUT, PARTITIONS, 1), NewTopic(OUTPUT, PARTITIONS, 1)]
    ).values():
        created.result(30)
    application = WordCount(kafka_server.bootstrap, unique("word-count"), tmp_path)
    yield application
    application.kill()
    for deleted in admin.delete_topics([INPUT, OUTPUT]).values():
        deleted.result(30)


def write(bootstrap: str, lines: list[str]) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "enable.idempotence": True})
    for number, line in enumerate(lines):
        producer.produce(INPUT, line.encode(), partition=number % PARTITIONS)
    assert producer.flush(30) == 0


def counts(bootstrap: str) -> dict[str, list[int]]:
    """The counts of each word, in the order they were written, as a committed reader sees them."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "compat-reader",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "isolation.level": "read_committed",
        }
    )
    consumer.assign([TopicPartition(OUTPUT, number, 0) for number in range(PARTITIONS)])
    found: defaultdict[str, list[int]] = defaultdict(list)
    ended = 0
    try:
        while ended < PARTITIONS:
            message = consumer.poll(30)
            assert message is not None, "nothing to read, and no end"
            if message.error() is None:
                (count,) = struct.unpack(">q", message.value() or b"")
                found[(message.key() or b"").decode()].append(count)
            else:
                assert message.error().code() == KafkaError._PARTITION_EOF
                ended += 1
    finally:
        consumer.close()
    return dict(found)


def test_words_are_counted_exactly_once_across_restarts(kafka_server: Server, word_count: WordCount) -> None:
    chance = random.Random(1)
    lines = [" ".join(chance.choices(WORDS, k=5)) for _ in range(LINES)]
    expected = Counter(word for line in lines for word in line.split())
    bootstrap = kafka_server.bootstrap

    def counted() -> int:
        return sum(max(each) for each in counts(bootstrap).values())

    half = LINES // 2
    write(bootstrap, lines[:half])
    word_count.start()
    eventually(counted, lambda total: total > 0, seconds=90)
    word_count.kill()  # in the middle of whatever it does
    write(bootstrap, lines[half:])
    word_count.start()
    eventually(counted, lambda total: total > half * 5, seconds=90)
    word_count.stop()
    word_count.start()
    eventually(counted, lambda total: total >= LINES * 5, seconds=90)
    word_count.stop()
    # Without a cache every change is written: each word's counts must be 1, 2, 3 … without gap or repetition.
    assert counts(bootstrap) == {word: list(range(1, count + 1)) for word, count in expected.items()}
