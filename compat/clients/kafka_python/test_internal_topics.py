"""`__consumer_offsets` as an exporter reads it: from the first record on, then what comes."""

from __future__ import annotations

import struct

from kafka import OffsetAndMetadata, TopicPartition

from compat.harness.waiting import eventually

OFFSETS = "__consumer_offsets"


def commit(consumer, topic, group, offset):
    committer = consumer(topic, group_id=group, enable_auto_commit=False)
    partition = TopicPartition(topic, 0)
    committer.commit({partition: OffsetAndMetadata(offset, "", -1)})
    assert committer.committed(partition) == offset


def key_of(group, topic):
    def text(value):
        return struct.pack(">h", len(value)) + value.encode()

    return struct.pack(">h", 1) + text(group) + text(topic) + struct.pack(">i", 0)


class Offsets:
    """The committed offset of a group, as the records tell it."""

    def __init__(self, reader, key):
        self._reader = reader
        self._key = key
        self.seen = []

    def poll(self):
        for records in self._reader.poll(200).values():
            self.seen += [
                None if record.value is None else struct.unpack_from(">q", record.value, 2)[0]
                for record in records
                if record.key == self._key
            ]
        return self.seen


def test_offsets_are_read_and_followed(admin, new_topic, consumer, unique):
    topic, group = new_topic(), unique("group")
    commit(consumer, topic, group, 5)
    (description,) = admin.describe_topics([OFFSETS])
    assert description["is_internal"] is True
    reader = consumer(OFFSETS, len(description["partitions"]), group_id=None)
    offsets = Offsets(reader, key_of(group, topic))
    eventually(lambda: offsets.poll() == [5])
    commit(consumer, topic, group, 6)
    eventually(lambda: offsets.poll() == [5, 6])
    commit(consumer, topic, group, 4)
    eventually(lambda: offsets.poll() == [5, 6, 4])
    admin.delete_groups([group])
    eventually(lambda: offsets.poll() == [5, 6, 4, None])


def test_a_reader_from_the_end_gets_only_what_comes(admin, new_topic, consumer, unique):
    topic, group = new_topic(), unique("group")
    commit(consumer, topic, group, 5)
    (description,) = admin.describe_topics([OFFSETS])
    partitions = [TopicPartition(OFFSETS, each["partition_index"]) for each in description["partitions"]]
    reader = consumer(OFFSETS, len(partitions), group_id=None)
    reader.seek_to_end(*partitions)
    for partition in partitions:
        reader.position(partition)
    commit(consumer, topic, group, 6)
    offsets = Offsets(reader, key_of(group, topic))
    eventually(lambda: offsets.poll() == [6])
