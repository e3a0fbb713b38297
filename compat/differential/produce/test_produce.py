"""Produce: what is appended, what is refused, and how."""

from __future__ import annotations

import gzip
import struct
import zlib

import pytest

from compat.differential.pair import Pair
from compat.differential.recordings import NOW
from compat.harness.batches import CONTROL, TRANSACTIONAL, Record, batch, encode_records
from compat.harness.brokers import running
from compat.harness.side import CLOSED, versions
from compat.harness.waiting import eventually

THREE = (Record(b"a", b"k"), Record(b"b", b"k"), Record(b"c", b"k"))


def produce(side, topic, records, *, version=9, acks=-1, partition=0, topic_id=None, transactional_id=None):
    name = {"TopicId": topic_id} if version >= 13 else {"Name": topic}
    data = {**name, "PartitionData": [{"Index": partition, "Records": records}]}
    request = {"Acks": acks, "TimeoutMs": 10_000, "TopicData": [data], "TransactionalId": transactional_id}
    return side.ask("Produce", version, request)


def end_offset(side, topic, partition=0):
    wanted = {"Name": topic, "Partitions": [{"PartitionIndex": partition, "Timestamp": -1}]}
    return side.raw("ListOffsets", 4, {"Topics": [wanted]})["Topics"][0]["Partitions"][0]["Offset"]


def wrapped(magic, *values):
    """A message set of format 0 or 1."""
    out = b""
    for offset, value in enumerate(values):
        head = struct.pack(">bb", magic, 0) + (struct.pack(">q", NOW) if magic == 1 else b"")
        body = head + struct.pack(">i", -1) + struct.pack(">i", len(value)) + value
        out += struct.pack(">qiI", offset, len(body) + 4, zlib.crc32(body)) + body
    return out


CONTENTS = {
    "one record": batch(timestamp_ms=NOW),
    "three records": batch(THREE, timestamp_ms=NOW),
    "base offset 77": batch(timestamp_ms=NOW, base_offset=77),
    "leader epoch 5": batch(timestamp_ms=NOW, leader_epoch=5),
    "timestamp -1": batch(timestamp_ms=-1),
    "timestamp 0": batch(timestamp_ms=0),
    "timestamp -2": batch(timestamp_ms=-2),
    "timestamp in two hours": batch(timestamp_ms=NOW + 7_200_000),
    "max timestamp too small": batch((Record(timestamp_delta=50),), timestamp_ms=NOW, max_timestamp_ms=NOW),
    "max timestamp too large": batch(timestamp_ms=NOW, max_timestamp_ms=NOW + 50),
    "unused attribute bits": batch(timestamp_ms=NOW, attributes=0x7F80),
    "delete horizon bit": batch(timestamp_ms=NOW, attributes=0x40),
    "log append time bit": batch(timestamp_ms=NOW, attributes=0x08),
    "gzip": batch(
        THREE, timestamp_ms=NOW, attributes=1, payload=gzip.compress(encode_records(THREE), mtime=0)
    ),
    "gzip, not gzip inside": batch(THREE, timestamp_ms=NOW, attributes=1, payload=b"nonsense"),
    "gzip, fewer inside": batch(
        THREE, timestamp_ms=NOW, attributes=1, payload=gzip.compress(encode_records(THREE[:2]), mtime=0)
    ),
    "codec 5": batch(THREE, timestamp_ms=NOW, attributes=5),
    "codec 7": batch(THREE, timestamp_ms=NOW, attributes=7),
    "bad crc": batch(timestamp_ms=NOW, crc_change=1),
    "magic 3": batch(timestamp_ms=NOW, magic=3),
    "magic -1": batch(timestamp_ms=NOW, magic=-1),
    "magic 0": wrapped(0, b"old"),
    "magic 1": wrapped(1, b"old"),
    "no records": batch((), timestamp_ms=NOW, last_offset_delta=-1),
    "no records, delta 0": batch((), timestamp_ms=NOW, last_offset_delta=0),
    "count too large": batch(timestamp_ms=NOW, record_count=2, last_offset_delta=1),
    "count too small": batch(THREE, timestamp_ms=NOW, record_count=2, last_offset_delta=1),
    "count -1": batch(timestamp_ms=NOW, record_count=-1),
    "delta too large": batch(timestamp_ms=NOW, last_offset_delta=5),
    "delta negative": batch(timestamp_ms=NOW, last_offset_delta=-5),
    "control": batch(timestamp_ms=NOW, attributes=CONTROL),
    "transactional": batch(timestamp_ms=NOW, attributes=TRANSACTIONAL),
    "producer id 5, no epoch": batch(timestamp_ms=NOW, producer_id=5),
    "producer id 5, no sequence": batch(timestamp_ms=NOW, producer_id=5, producer_epoch=0),
    "producer id -2": batch(timestamp_ms=NOW, producer_id=-2, producer_epoch=0, base_sequence=0),
    "two batches": batch(timestamp_ms=NOW) + batch(timestamp_ms=NOW),
    "garbage after": batch(timestamp_ms=NOW) + b"garbage",
    "a batch cut short": batch(timestamp_ms=NOW)[:-3],
    "a header cut short": batch(timestamp_ms=NOW)[:40],
    "sixteen bytes": batch(timestamp_ms=NOW)[:16],
    "length too large": batch(timestamp_ms=NOW, length_change=10),
    "length too small": batch(timestamp_ms=NOW, length_change=-5),
    "length 0": struct.pack(">qi", 0, 0) + bytes(60),
    "length -1": struct.pack(">qi", 0, -1) + bytes(60),
    "delta and count disagree": batch(timestamp_ms=NOW, payload=encode_records(THREE), record_count=3),
    "records of zeros": batch(timestamp_ms=NOW, payload=bytes(20)),
    "empty": b"",
    "at the limit": batch((Record(b"x" * (1048588 - 61 - 13)),), timestamp_ms=NOW),
    "past the limit": batch((Record(b"x" * 1048588),), timestamp_ms=NOW),
}
# What Apache Kafka finds because it decodes every record; kbroker does with kbroker.validate.records=true.
DEEP = {
    "gzip, not gzip inside",
    "gzip, fewer inside",
    "count too large",
    "count too small",
    "records of zeros",
}
# Apache Kafka answers UNKNOWN_SERVER_ERROR, kbroker UNSUPPORTED_COMPRESSION_TYPE.
MORE_PRECISE = {"codec 5", "codec 7"}


@pytest.mark.parametrize("case", [case for case in CONTENTS if case not in DEEP | MORE_PRECISE])
def test_contents_are_appended_or_refused(pair, topic, case):
    def scenario(side):
        side.create_topic(topic, retention_ms="-1")
        answer = produce(side, topic, CONTENTS[case])
        return answer, end_offset(side, topic)

    pair.same(scenario)


@pytest.fixture(scope="module")
def strict_brokers():
    """A kbroker that validates every record, and Apache Kafka."""
    with running({}, {"kbroker.validate.records": "true"}) as servers:
        yield servers


@pytest.fixture
def strict_pair(strict_brokers, recording):
    pair = Pair(strict_brokers, recording)
    yield pair
    pair.disconnect()


@pytest.mark.parametrize("case", ["one record", "three records", "gzip", *sorted(DEEP)])
def test_records_are_validated_where_kbroker_is_told_to(strict_pair, topic, case):
    """Apache Kafka calls a broken compressed payload an unknown server error."""

    def scenario(side):
        side.create_topic(topic)
        answer = produce(side, topic, CONTENTS[case])
        code = answer["Responses"][0]["PartitionResponses"][0]["ErrorCode"]
        return code if case != "gzip, not gzip inside" else code != 0, end_offset(side, topic)

    strict_pair.same(scenario)


@pytest.mark.parametrize("case", ["one record", "bad crc", "no records, delta 0", "two batches", "control"])
def test_contents_at_every_version(pair, topic, case):
    def scenario(side):
        topic_id = side.create_topic(topic)
        return {
            version: produce(side, topic, CONTENTS[case], version=version, topic_id=topic_id)
            for version in versions("Produce")
        }

    pair.same(scenario)


@pytest.mark.parametrize(
    "case", ["one record", "timestamp -1", "timestamp 0", "log append time bit", "bad crc"]
)
@pytest.mark.parametrize("version", [3, 9])
def test_log_append_time(pair, topic, case, version):
    def scenario(side):
        side.create_topic(topic, message_timestamp_type="LogAppendTime")
        answer = produce(side, topic, CONTENTS[case], version=version)
        appended = answer["Responses"][0]["PartitionResponses"][0]
        appended["LogAppendTimeMs"] = appended["LogAppendTimeMs"] > 0
        return answer

    pair.same(scenario)


def test_a_compacted_topic_wants_keys(pair, topic):
    def scenario(side):
        side.create_topic(topic, cleanup_policy="compact")
        mixed = batch(
            (Record(key=b"k"), Record(key=None), Record(key=b"k"), Record(key=None)), timestamp_ms=NOW
        )
        return [
            produce(side, topic, records, version=version)
            for version in (3, 8, 9)
            for records in (CONTENTS["one record"], CONTENTS["three records"], mixed)
        ]

    pair.same(scenario)


@pytest.mark.parametrize("name", ["{}-unknown", "bad name", ""])
def test_topics_that_cannot_be_written(pair, topic, name):
    pair.same(lambda side: produce(side, name.replace("{}", topic), CONTENTS["one record"]))


@pytest.mark.parametrize(("name", "key_type"), [("__consumer_offsets", 0), ("__transaction_state", 1)])
def test_topics_that_only_the_broker_writes(pair, name, key_type):
    """They are there when a coordinator was first asked for."""

    def scenario(side):
        asked = {"Key": "any", "KeyType": key_type}
        eventually(lambda: side.raw("FindCoordinator", 2, asked)["ErrorCode"] == 0)
        return produce(side, name, CONTENTS["one record"])

    pair.same(scenario)


@pytest.mark.parametrize("partition", [1, -1, 2**31 - 1])
def test_partitions_that_do_not_exist(pair, topic, partition):
    def scenario(side):
        side.create_topic(topic)
        return produce(side, topic, CONTENTS["one record"], partition=partition)

    pair.same(scenario)


def test_topic_ids(pair, topic):
    def scenario(side):
        topic_id = side.create_topic(topic)
        unknown = side.call(b"unknown topic id", "unknown id")
        return [
            produce(side, topic, CONTENTS["one record"], version=13, topic_id=each)
            for each in (topic_id, unknown, bytes(16))
        ]

    pair.same(scenario)


@pytest.mark.parametrize("acks", [-2, 2, 3, 32767, -32768])
def test_acks_that_nobody_knows(pair, topic, acks):
    def scenario(side):
        side.create_topic(topic)
        return {v: produce(side, topic, CONTENTS["one record"], version=v, acks=acks) for v in (3, 8, 9, 12)}

    pair.same(scenario)


@pytest.mark.parametrize("acks", [1, -1])
def test_min_insync_replicas_of_two(pair, topic, acks):
    """One broker has one replica: acks=all cannot be satisfied, acks=1 can."""

    def scenario(side):
        side.create_topic(topic, min_insync_replicas="2")
        return produce(side, topic, CONTENTS["one record"], acks=acks), end_offset(side, topic)

    pair.same(scenario)


def test_without_acknowledgement_an_error_closes_the_connection(pair, topic):
    def scenario(side):
        side.create_topic(topic)
        data = {
            "Name": f"{topic}-unknown",
            "PartitionData": [{"Index": 0, "Records": CONTENTS["one record"]}],
        }
        side.connection.send("Produce", 9, {"Acks": 0, "TimeoutMs": 1000, "TopicData": [data]})
        return side.ask("Metadata", 9, {"Topics": []})

    pair.same(scenario)


def test_without_acknowledgement_there_is_no_answer(pair, topic):
    def scenario(side):
        side.create_topic(topic)
        data = {"Name": topic, "PartitionData": [{"Index": 0, "Records": CONTENTS["one record"]}]}
        side.connection.send("Produce", 9, {"Acks": 0, "TimeoutMs": 1000, "TopicData": [data]})
        answer = side.ask("Metadata", 9, {"Topics": []})
        assert answer != CLOSED
        return answer, end_offset(side, topic)

    pair.same(scenario)


def test_one_bad_partition_does_not_stop_the_others(pair, topic):
    def scenario(side):
        side.create_topic(topic, 3)
        parts = [
            {"Index": 0, "Records": CONTENTS["one record"]},
            {"Index": 1, "Records": CONTENTS["bad crc"]},
            {"Index": 2, "Records": CONTENTS["three records"]},
            {"Index": 9, "Records": CONTENTS["one record"]},
        ]
        topics = [
            {"Name": topic, "PartitionData": parts},
            {"Name": f"{topic}-no", "PartitionData": [parts[0]]},
        ]
        answer = side.ask("Produce", 9, {"Acks": -1, "TimeoutMs": 1000, "TopicData": topics})
        answer["Responses"].sort(key=lambda each: each["Name"])
        for each in answer["Responses"]:
            each["PartitionResponses"].sort(key=lambda part: part["Index"])
        return answer

    pair.same(scenario)


def test_a_transactional_id_without_transactional_records_and_the_reverse(pair, topic):
    def scenario(side):
        side.create_topic(topic)
        plain, transactional = CONTENTS["one record"], CONTENTS["transactional"]
        return produce(side, topic, plain, transactional_id="tx"), produce(side, topic, transactional)

    pair.same(scenario)


# Idempotent producers


def new_producer(side):
    """A fresh producer id; Kafka's first one takes a moment."""
    wanted = {"TransactionalId": None, "TransactionTimeoutMs": 60_000}
    answer = eventually(lambda: side.raw("InitProducerId", 4, wanted), lambda found: found["ErrorCode"] == 0)
    assert answer["ProducerEpoch"] == 0
    return answer["ProducerId"]


def sequenced(producer_id, sequence, count=1, epoch=0):
    records = [Record(str(number).encode()) for number in range(count)]
    return batch(
        records, timestamp_ms=NOW, producer_id=producer_id, producer_epoch=epoch, base_sequence=sequence
    )


STORIES = {
    "in order": [(0, 1), (1, 3), (4, 1)],
    "a duplicate of the last": [(0, 1), (1, 1), (1, 1)],
    "a duplicate of the fifth last": [*[(n, 1) for n in range(6)], (1, 1)],
    "older than the last five": [*[(n, 1) for n in range(7)], (0, 1)],
    "overlapping": [(0, 3), (1, 1)],
    "a duplicate with another count": [(0, 3), (0, 2)],
    "a gap": [(0, 1), (2, 1)],
    "starting at one": [(1, 1)],
    "starting at a thousand": [(1000, 1)],
    "starting with minus one": [(-1, 1)],
    "wrapping around": [(0, 1), (2**31 - 1, 1), (0, 1)],
    "starting at the end": [(2**31 - 1, 2), (1, 1)],
}


@pytest.mark.parametrize("story", STORIES)
def test_sequences(pair, topic, story):
    def scenario(side):
        side.create_topic(topic)
        producer_id = new_producer(side)
        answers = [
            produce(side, topic, sequenced(producer_id, sequence, count))
            for sequence, count in STORIES[story]
        ]
        return answers, end_offset(side, topic)

    pair.same(scenario)


EPOCHS = {
    "a newer epoch from zero": [(0, 0), (1, 0)],
    "a newer epoch from one": [(0, 0), (1, 1)],
    "an older epoch": [(1, 0), (0, 0)],
    "an older epoch with the next sequence": [(1, 0), (0, 1)],
    "a jump of epochs": [(0, 0), (5, 0), (5, 1)],
    "the same epoch again from zero": [(0, 0), (0, 1), (0, 0)],
}


@pytest.mark.parametrize("story", EPOCHS)
def test_producer_epochs(pair, topic, story):
    def scenario(side):
        side.create_topic(topic)
        producer_id = new_producer(side)
        return [
            produce(side, topic, sequenced(producer_id, sequence, epoch=epoch))
            for epoch, sequence in EPOCHS[story]
        ]

    pair.same(scenario)


def test_a_producer_that_nobody_knows(pair, topic):
    def scenario(side):
        side.create_topic(topic)
        return [produce(side, topic, sequenced(987_654_321, sequence)) for sequence in (0, 1, 5)]

    pair.same(scenario)


def test_two_sequenced_batches_in_one_request(pair, topic):
    def scenario(side):
        side.create_topic(topic)
        producer_id = new_producer(side)
        return produce(side, topic, sequenced(producer_id, 0) + sequenced(producer_id, 1))

    pair.same(scenario)


def test_records_deleted_below_a_producers_sequence(pair, topic):
    def scenario(side):
        side.create_topic(topic)
        producer_id = new_producer(side)
        first = produce(side, topic, sequenced(producer_id, 0))
        wanted = {"Name": topic, "Partitions": [{"PartitionIndex": 0, "Offset": -1}]}
        side.raw("DeleteRecords", 2, {"Topics": [wanted], "TimeoutMs": 10_000})
        return (
            first,
            produce(side, topic, sequenced(producer_id, 0)),
            produce(side, topic, sequenced(producer_id, 1)),
        )

    pair.same(scenario)


@pytest.mark.parametrize(
    "request_",
    [
        {"TransactionalId": None, "TransactionTimeoutMs": 60_000},
        {"TransactionalId": None, "TransactionTimeoutMs": 0},
        {"TransactionalId": None, "TransactionTimeoutMs": 2**31 - 1},
        {"TransactionalId": "", "TransactionTimeoutMs": 60_000},
        {"TransactionalId": None, "TransactionTimeoutMs": 60_000, "ProducerId": 5, "ProducerEpoch": -1},
        {"TransactionalId": None, "TransactionTimeoutMs": 60_000, "ProducerId": 5, "ProducerEpoch": 3},
        {"TransactionalId": None, "TransactionTimeoutMs": 60_000, "ProducerId": -1, "ProducerEpoch": 3},
        {"TransactionalId": None, "TransactionTimeoutMs": 60_000, "ProducerId": -5, "ProducerEpoch": 3},
    ],
    ids=str,
)
def test_init_producer_id(pair, request_):
    def scenario(side):
        new_producer(side)
        return side.every_version("InitProducerId", request_)

    pair.same(scenario)


@pytest.mark.parametrize("case", sorted(MORE_PRECISE))
def test_an_unknown_codec_is_refused(pair, topic, case):
    def refused(side):
        side.create_topic(topic)
        answer = produce(side, topic, CONTENTS[case])
        return answer["Responses"][0]["PartitionResponses"][0]["ErrorCode"] != 0, end_offset(side, topic)

    pair.same(refused)
