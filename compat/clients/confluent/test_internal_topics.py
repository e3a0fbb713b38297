"""`__consumer_offsets` through librdkafka, as Burrow and kminion follow it."""

from __future__ import annotations

import pytest
from confluent_kafka import OFFSET_BEGINNING, TopicPartition

from compat.harness.waiting import eventually

OFFSETS = "__consumer_offsets"


@pytest.mark.parametrize("isolation", ["read_uncommitted", "read_committed"])
def test_offsets_are_read_to_the_end_and_followed(new_topic, topic, consumer, admin, unique, isolation):
    new_topic()
    group = unique("group")
    committer = consumer(topic, **{"group.id": group})
    committer.commit(offsets=[TopicPartition(topic, 0, 5)], asynchronous=False)
    partitions = admin.list_topics(OFFSETS, timeout=10).topics[OFFSETS].partitions
    reader = consumer(
        OFFSETS, **{"isolation.level": isolation, "enable.partition.eof": True, "enable.auto.commit": False}
    )
    reader.assign([TopicPartition(OFFSETS, number, OFFSET_BEGINNING) for number in partitions])
    at_end: set[int] = set()
    keys: list[bytes] = []

    def poll():
        message = reader.poll(0.5)
        if message is None:
            return
        if message.error():
            at_end.add(message.partition())
        else:
            keys.append(message.key())

    def read_of_group():
        poll()
        return [key for key in keys if group.encode() in key and topic.encode() in key]

    eventually(lambda: read_of_group() and at_end == set(partitions))
    count = len(read_of_group())
    committer.commit(offsets=[TopicPartition(topic, 0, 6)], asynchronous=False)
    eventually(lambda: len(read_of_group()) > count)
