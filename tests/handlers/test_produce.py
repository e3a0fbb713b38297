from __future__ import annotations

import struct
import zlib

import pytest

from kbroker.protocol.errors import ErrorCode
from kbroker.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from kbroker.protocol.records import Record, build_batch, compression
from kbroker.requests.answers import BadRequest

from .conftest import NOW_MS

UNKNOWN_ID = b"nobody knows me!"
CRC, MAGIC = 17, 16  # where they stand in a batch


def batch(*values: bytes, timestamp: int = NOW_MS, key: bytes | None = b"k", **fields) -> bytes:
    return build_batch([Record(timestamp, key, value) for value in values or (b"v",)], **fields)


def changed(records: bytes, position: int, value: int) -> bytes:
    return records[:position] + bytes([value]) + records[position + 1 :]


def message_set(magic: int, *values: bytes) -> bytes:
    """Messages of format 0 or 1, as old clients send them."""
    out = b""
    for offset, value in enumerate(values):
        head = struct.pack(">bb", magic, 0) + (struct.pack(">q", NOW_MS) if magic == 1 else b"")
        body = head + struct.pack(">i", -1) + struct.pack(">i", len(value)) + value
        out += struct.pack(">qiI", offset, len(body) + 4, zlib.crc32(body)) + body
    return out


@pytest.fixture(autouse=True)
def topic(cluster):
    return cluster.create("t", partitions=2)


@pytest.fixture
def produce(cluster, topic):
    """What the answer says of the one partition that is written."""

    def produce(records, version=9, *, name="t", topic_id=None, partition=0, acks=-1, **fields):
        data = [PartitionProduceData(partition, records)]
        named = {"topic_id": topic_id or topic.topic_id} if version >= 13 else {"name": name}
        topics = [TopicProduceData(**named, partition_data=data)]
        answer = cluster.send(
            ProduceRequest(acks=acks, timeout_ms=1000, topic_data=topics, **fields), version
        )
        ((answered,),) = [each.partition_responses for each in answer.responses]
        assert answered.index == partition
        return answered

    return produce


@pytest.mark.parametrize("version", range(3, 14))
def test_a_batch_is_appended_at_the_end_of_the_log(cluster, produce, version):
    first, second = produce(batch(b"a", b"b"), version), produce(batch(b"c"), version)
    assert [first.error_code, second.error_code] == [ErrorCode.NONE] * 2
    assert [first.base_offset, second.base_offset] == [0, 2]
    assert first.log_start_offset == (0 if version >= 5 else -1)
    assert first.log_append_time_ms == -1
    assert (first.record_errors, first.error_message) == ([], None)
    assert cluster.end_offset("t") == 3


@pytest.mark.parametrize(("version", "magic"), [(0, 0), (1, 0), (2, 1)])
def test_clients_of_old_send_message_sets(cluster, produce, version, magic):
    assert produce(message_set(magic, b"a", b"b"), version).error_code == ErrorCode.NONE
    assert cluster.end_offset("t") == 2


def test_an_empty_message_set_of_old_is_no_error(cluster, produce):
    assert produce(b"", 2).error_code == ErrorCode.NONE
    assert cluster.end_offset("t") == 0


@pytest.mark.parametrize("acks", [1, -1])
def test_one_replica_is_all_replicas(produce, cluster, acks):
    cluster.create("careful", min_insync_replicas="2")
    assert produce(batch(), name="careful", acks=acks).error_code == ErrorCode.NONE


def test_a_leader_epoch_that_a_client_writes_does_not_count(produce):
    assert produce(batch(leader_epoch=5)).error_code == ErrorCode.NONE


@pytest.mark.parametrize("version", [3, 9])
def test_a_topic_with_append_time_tells_it(cluster, produce, version):
    cluster.create("stamped", message_timestamp_type="LogAppendTime")
    assert produce(batch(), version, name="stamped").log_append_time_ms == cluster.now_ms


CONTENTS = {
    "a wrong checksum": (changed(batch(), CRC, batch()[CRC] ^ 1), "CORRUPT_MESSAGE"),
    "format 3": (changed(batch(), MAGIC, 3), "CORRUPT_MESSAGE"),
    "messages of format 1": (message_set(1, b"old"), "INVALID_RECORD"),
    "two batches": (batch() + batch(), "INVALID_RECORD"),
    "nothing": (b"", "INVALID_RECORD"),
    "a part of a batch": (batch()[:-3], "INVALID_RECORD"),
    "a part of a header": (batch()[:40], "INVALID_RECORD"),
    "a length of 0": (struct.pack(">qi", 0, 0) + bytes(60), "CORRUPT_MESSAGE"),
    "a base offset": (batch(base_offset=77), "INVALID_RECORD"),
    "a control batch": (batch(control=True), "INVALID_RECORD"),
    "a time two hours ahead": (batch(timestamp=NOW_MS + 7_200_000), "INVALID_TIMESTAMP"),
    "a batch above max.message.bytes": (batch(bytes(1_048_588)), "MESSAGE_TOO_LARGE"),
}


@pytest.mark.parametrize("content", CONTENTS)
def test_what_is_not_one_good_batch_is_refused(cluster, produce, content):
    records, code = CONTENTS[content]
    answer = produce(records)
    assert ErrorCode(answer.error_code).name == code
    assert answer.base_offset == -1
    assert cluster.end_offset("t") == 0


def test_what_follows_a_batch_and_makes_none_is_cut_off(cluster, produce):
    assert produce(batch() + b"garbage").error_code == ErrorCode.NONE
    assert cluster.end_offset("t") == 1


@pytest.mark.parametrize("version", [6, 7])
def test_zstd_came_with_version_7(produce, version):
    code = produce(batch(codec=compression.ZSTD), version).error_code
    assert code == (ErrorCode.NONE if version >= 7 else ErrorCode.UNSUPPORTED_COMPRESSION_TYPE)


@pytest.mark.parametrize("version", [3, 7, 8, 9])
def test_a_compacted_topic_wants_keys_and_from_version_8_on_names_the_records_without(
    cluster, produce, version
):
    cluster.create("compacted", cleanup_policy="compact")
    keys = [b"k", None, b"k", None]
    answer = produce(build_batch([Record(NOW_MS, key, b"v") for key in keys]), version, name="compacted")
    assert answer.error_code == ErrorCode.INVALID_RECORD
    assert [each.batch_index for each in answer.record_errors] == ([1, 3] if version >= 8 else [])
    assert cluster.end_offset("compacted") == 0


@pytest.mark.parametrize(
    ("where", "code"),
    [
        ({"name": "missing"}, "UNKNOWN_TOPIC_OR_PARTITION"),
        ({"name": "bad name"}, "UNKNOWN_TOPIC_OR_PARTITION"),
        ({"name": ""}, "UNKNOWN_TOPIC_OR_PARTITION"),
        ({"name": "__consumer_offsets"}, "INVALID_TOPIC_EXCEPTION"),
        ({"partition": 2}, "UNKNOWN_TOPIC_OR_PARTITION"),
        ({"partition": -1}, "UNKNOWN_TOPIC_OR_PARTITION"),
        ({"version": 13, "topic_id": UNKNOWN_ID}, "UNKNOWN_TOPIC_ID"),
        ({"version": 13, "partition": 2}, "UNKNOWN_TOPIC_OR_PARTITION"),
    ],
)
def test_a_partition_that_is_not_there_cannot_be_written(produce, where, code):
    assert ErrorCode(produce(batch(), **where).error_code).name == code


@pytest.mark.parametrize("acks", [-2, 2, 32767, -32768])
@pytest.mark.parametrize("version", [3, 9, 12])
def test_acks_are_all_one_or_none(produce, version, acks):
    assert produce(batch(), version, acks=acks).error_code == ErrorCode.INVALID_REQUIRED_ACKS


def without_acks(topic: str, records: bytes) -> ProduceRequest:
    data = TopicProduceData(topic, partition_data=[PartitionProduceData(0, records)])
    return ProduceRequest(acks=0, timeout_ms=1000, topic_data=[data])


def test_without_acks_there_is_no_answer(cluster):
    assert cluster.send(without_acks("t", batch()), 9) is None
    assert cluster.end_offset("t") == 1


@pytest.mark.parametrize(("topic", "batches"), [("missing", 1), ("t", 2)])
def test_without_acks_an_error_ends_the_connection(cluster, topic, batches):
    with pytest.raises(BadRequest, match="a Produce with acks=0 failed"):
        cluster.send(without_acks(topic, batch() * batches), 9)


def test_one_bad_partition_does_not_stop_the_others(cluster):
    parts = [(0, batch()), (1, batch() + batch()), (9, batch())]
    topics = [
        TopicProduceData("t", partition_data=[PartitionProduceData(*part) for part in parts]),
        TopicProduceData("missing", partition_data=[PartitionProduceData(0, batch())]),
    ]
    answer = cluster.send(ProduceRequest(acks=-1, timeout_ms=1000, topic_data=topics), 9)
    assert {
        (each.name, part.index): ErrorCode(part.error_code).name
        for each in answer.responses
        for part in each.partition_responses
    } == {
        ("t", 0): "NONE",
        ("t", 1): "INVALID_RECORD",
        ("t", 9): "UNKNOWN_TOPIC_OR_PARTITION",
        ("missing", 0): "UNKNOWN_TOPIC_OR_PARTITION",
    }
    assert cluster.end_offset("t") == 1


def test_a_request_of_many_partitions_is_answered_for_each(cluster):
    """So many that they are appended in turns with other requests."""
    count = 130
    cluster.create("wide", partitions=count)
    data = [PartitionProduceData(partition, batch()) for partition in range(count)]
    request = ProduceRequest(
        acks=-1, timeout_ms=1000, topic_data=[TopicProduceData("wide", partition_data=data)]
    )
    (answer,) = cluster.send(request, 9).responses
    assert {part.index: part.base_offset for part in answer.partition_responses} == dict.fromkeys(
        range(count), 0
    )


# idempotent producers

STORIES = {
    "in order": ([(0, 1), (1, 3), (4, 1)], [0, 1, 4]),
    "the last one again": ([(0, 1), (1, 1), (1, 1)], [0, 1, 1]),
    "one of the last five again": ([*[(n, 1) for n in range(6)], (1, 1)], [0, 1, 2, 3, 4, 5, 1]),
    "an older one again": (
        [*[(n, 1) for n in range(7)], (0, 1)],
        [*range(7), "OUT_OF_ORDER_SEQUENCE_NUMBER"],
    ),
    "a gap": ([(0, 1), (2, 1)], [0, "OUT_OF_ORDER_SEQUENCE_NUMBER"]),
    "a part again": ([(0, 3), (1, 1)], [0, "OUT_OF_ORDER_SEQUENCE_NUMBER"]),
}


@pytest.mark.parametrize("story", STORIES)
def test_a_producer_that_counts_is_written_once_and_in_order(produce, story):
    sent, expected = STORIES[story]
    answers = [
        produce(batch(*[b"v"] * count, producer_id=7, producer_epoch=0, base_sequence=sequence))
        for sequence, count in sent
    ]
    assert [
        ErrorCode(each.error_code).name if each.error_code else each.base_offset for each in answers
    ] == expected


@pytest.mark.parametrize(
    ("epoch", "sequence", "code"),
    [
        (2, 0, "NONE"),
        (2, 1, "OUT_OF_ORDER_SEQUENCE_NUMBER"),
        (0, 0, "INVALID_PRODUCER_EPOCH"),
        (0, 1, "INVALID_PRODUCER_EPOCH"),
    ],
)
def test_a_newer_epoch_of_a_producer_begins_anew_and_an_older_one_is_fenced(produce, epoch, sequence, code):
    produce(batch(producer_id=7, producer_epoch=1, base_sequence=0))
    answer = produce(batch(producer_id=7, producer_epoch=epoch, base_sequence=sequence))
    assert ErrorCode(answer.error_code).name == code


# transactions; what they do to logs is tested in tests/transactions


@pytest.mark.parametrize("version", [3, 9, 11, 12, 13])
def test_a_transactional_batch_needs_a_transactional_id(cluster, produce, version):
    records = batch(producer_id=7, producer_epoch=0, base_sequence=0, transactional=True)
    answer = produce(records, version)
    assert answer.error_code == ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    assert cluster.end_offset("t") == 0


@pytest.mark.parametrize("version", [3, 9, 11, 12, 13])
def test_a_transactional_id_that_nobody_has_cannot_write(cluster, produce, version):
    records = batch(producer_id=7, producer_epoch=0, base_sequence=0, transactional=True)
    answer = produce(records, version, transactional_id="unknown")
    assert answer.error_code == ErrorCode.INVALID_PRODUCER_ID_MAPPING
    assert cluster.end_offset("t") == 0


def test_a_plain_batch_may_come_with_a_transactional_id(cluster, produce):
    assert produce(batch(), transactional_id="id").error_code == ErrorCode.NONE
    assert cluster.end_offset("t") == 1
