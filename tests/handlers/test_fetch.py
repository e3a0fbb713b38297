from __future__ import annotations

import zlib

import pytest

from kbroker.pending import Pending
from kbroker.protocol.errors import ErrorCode
from kbroker.protocol.messages.fetch import (
    EpochEndOffset,
    FetchPartition,
    FetchRequest,
    FetchTopic,
    ForgottenTopic,
    LeaderIdAndEpoch,
    NodeEndpoint,
)
from kbroker.protocol.records import iter_batches, iter_records

from .conftest import NOW_MS

UNKNOWN_ID = b"nobody knows me!"
BATCH_BYTES = 76  # of one record, as Cluster.produce makes it
FULL, CLOSE = 0, -1  # epochs that open and that close a session


@pytest.fixture(autouse=True)
def topic(cluster):
    return cluster.create("t", partitions=3)


def wanted(partition: int = 0, offset: int = 0, max_bytes: int = 1 << 20, **fields) -> FetchPartition:
    return FetchPartition(partition=partition, fetch_offset=offset, partition_max_bytes=max_bytes, **fields)


@pytest.fixture
def fetch(cluster, topic):
    """The whole answer for partitions of one topic, or the Pending of it."""

    def fetch(*partitions, version=12, name="t", topic_id=None, **fields):
        named = {"topic_id": topic_id or topic.topic_id} if version >= 13 else {"topic": name}
        topics = [FetchTopic(**named, partitions=list(partitions))] if partitions else []
        return cluster.send(FetchRequest(**{"max_bytes": 1 << 20, **fields}, topics=topics), version)

    return fetch


@pytest.fixture
def read(fetch):
    """What the answer says of the one partition that is asked for."""

    def read(offset: int = 0, version: int = 12, *, max_bytes=1 << 20, partition: int = 0, **fields):
        (answered,) = fetch(wanted(partition, offset, max_bytes), version=version, **fields).responses
        (data,) = answered.partitions
        assert data.partition_index == partition
        return data

    return read


def offsets(data) -> list[int]:
    """Of all records that the answer holds."""
    records = bytes(data.records)
    return [
        record.offset
        for position, header in iter_batches(records)
        for record in iter_records(memoryview(records)[position : position + header.size_bytes])
    ]


def by_partition(answer) -> dict[int, list[int]]:
    return {data.partition_index: offsets(data) for topic in answer.responses for data in topic.partitions}


# reading


@pytest.mark.parametrize("version", range(4, 19))
def test_records_are_read_from_an_offset_on(cluster, read, version):
    for number in range(3):
        cluster.produce("t", NOW_MS + number)
    data = read(1, version)
    assert (data.error_code, offsets(data)) == (ErrorCode.NONE, [1, 2])
    assert (data.high_watermark, data.last_stable_offset) == (3, 3)
    assert data.log_start_offset == (0 if version >= 5 else -1)
    assert data.aborted_transactions is None
    assert data.preferred_read_replica == -1


@pytest.mark.parametrize(("version", "magic"), [(0, 0), (1, 0), (2, 1), (3, 1)])
def test_clients_of_old_get_message_sets(cluster, read, version, magic):
    cluster.produce("t", NOW_MS)
    message = bytes(read(0, version).records)
    assert message[16] == magic
    assert int.from_bytes(message[12:16], "big") == zlib.crc32(message[16:])


def test_at_the_end_of_the_log_there_is_nothing_and_no_error(cluster, read):
    cluster.produce("t", NOW_MS)
    data = read(1)
    assert (data.error_code, bytes(data.records), data.high_watermark) == (ErrorCode.NONE, b"", 1)


@pytest.mark.parametrize("offset", [4, -1, -2, 2**62])
@pytest.mark.parametrize("version", [4, 12, 18])
def test_an_offset_outside_the_log_is_out_of_range(cluster, read, version, offset):
    cluster.produce("t", NOW_MS, NOW_MS, NOW_MS)
    data = read(offset, version)
    assert (data.error_code, bytes(data.records)) == (ErrorCode.OFFSET_OUT_OF_RANGE, b"")
    assert (data.high_watermark, data.log_start_offset) == (-1, -1)


def test_records_below_the_log_start_are_out_of_range(cluster, read):
    cluster.produce("t", NOW_MS, NOW_MS, NOW_MS)
    cluster.broker.find_log("t", 0).delete_records_before(2)
    assert read(1).error_code == ErrorCode.OFFSET_OUT_OF_RANGE
    assert (read(2).error_code, read(2).log_start_offset) == (ErrorCode.NONE, 2)


def test_an_offset_inside_a_batch_gets_the_whole_batch(cluster, read):
    cluster.produce("t", *[NOW_MS] * 10)
    assert offsets(read(5)) == list(range(10))


@pytest.mark.parametrize(
    ("where", "code"),
    [
        ({"partition": 7}, "UNKNOWN_TOPIC_OR_PARTITION"),
        ({"partition": -1}, "UNKNOWN_TOPIC_OR_PARTITION"),
        ({"name": "missing"}, "UNKNOWN_TOPIC_OR_PARTITION"),
        ({"name": "bad name"}, "UNKNOWN_TOPIC_OR_PARTITION"),
        ({"version": 13, "partition": 7}, "UNKNOWN_TOPIC_OR_PARTITION"),
        ({"version": 13, "topic_id": UNKNOWN_ID}, "UNKNOWN_TOPIC_ID"),
    ],
)
def test_a_partition_that_is_not_there_cannot_be_read(read, where, code):
    data = read(**where)
    assert ErrorCode(data.error_code).name == code
    assert (data.high_watermark, bytes(data.records)) == (-1, b"")


def test_one_partition_that_is_not_there_does_not_stop_the_others(cluster, fetch):
    cluster.produce("t", NOW_MS)
    (answered,) = fetch(wanted(0), wanted(7)).responses
    codes = {data.partition_index: data.error_code for data in answered.partitions}
    assert codes == {0: ErrorCode.NONE, 7: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}


def test_of_a_partition_that_is_named_twice_the_last_one_counts(cluster, fetch):
    for _ in range(3):
        cluster.produce("t", NOW_MS)
    assert by_partition(fetch(wanted(0, 0), wanted(0, 2))) == {0: [2]}


def test_nobody_but_the_leader_is_a_replica(cluster, read):
    cluster.produce("t", NOW_MS)
    assert read(0, replica_id=7).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER


# limits, as KIP-74 has them


def test_the_limit_of_a_partition_is_kept_but_one_batch_is_always_read(cluster, read):
    for _ in range(3):
        cluster.produce("t", NOW_MS)
    assert offsets(read(0, max_bytes=2 * BATCH_BYTES)) == [0, 1]
    assert offsets(read(0, max_bytes=1)) == [0]


def test_the_limit_of_the_answer_is_kept_but_the_first_partition_has_one_batch(cluster, fetch):
    for partition in range(3):
        cluster.produce("t", NOW_MS, partition=partition)
    answer = fetch(wanted(0), wanted(1), wanted(2), max_bytes=2 * BATCH_BYTES)
    assert by_partition(answer) == {0: [0], 1: [0], 2: []}
    assert by_partition(fetch(wanted(0), wanted(1), max_bytes=1)) == {0: [0], 1: []}


class TestWithALimitOfTheBroker:
    @pytest.fixture
    def settings(self):
        return {"node.id": "1", "fetch.max.bytes": "1024"}

    def test_no_answer_is_larger_whatever_the_client_asks_for(self, cluster, read):
        for _ in range(20):
            cluster.produce("t", NOW_MS)
        assert offsets(read()) == list(range(1024 // BATCH_BYTES))


# waiting


def test_a_fetch_waits_for_records(cluster, fetch):
    answer = fetch(wanted(0), wanted(1), max_wait_ms=1000, min_bytes=1)
    assert isinstance(answer, Pending)
    cluster.produce("t", NOW_MS, partition=1)
    assert by_partition(answer.result()) == {0: [], 1: [0]}


def test_a_fetch_waits_until_there_is_enough(cluster, fetch):
    cluster.produce("t", NOW_MS)
    answer = fetch(wanted(0), max_wait_ms=1000, min_bytes=2 * BATCH_BYTES)
    assert not answer.done
    cluster.produce("t", NOW_MS)
    assert by_partition(answer.result()) == {0: [0, 1]}


def test_a_fetch_that_waited_long_enough_gets_what_there_is(cluster, fetch):
    cluster.produce("t", NOW_MS)
    answer = fetch(wanted(0), max_wait_ms=1000, min_bytes=1_000_000)
    assert not answer.done
    for callback in list(cluster.scheduler.waiting):
        callback()
    assert by_partition(answer.result()) == {0: [0]}


@pytest.mark.parametrize(
    "fields",
    [{"min_bytes": 0, "max_wait_ms": 1000}, {"min_bytes": 1, "max_wait_ms": 0}],
    ids=["no bytes wanted", "no time to wait"],
)
def test_a_fetch_that_may_not_wait_is_answered_at_once(fetch, fields):
    assert by_partition(fetch(wanted(0), **fields)) == {0: []}


def test_an_error_does_not_wait(fetch):
    (answered,) = fetch(wanted(0, 99), max_wait_ms=1000, min_bytes=1).responses
    assert answered.partitions[0].error_code == ErrorCode.OFFSET_OUT_OF_RANGE


# sessions, as KIP-227 has them

SESSIONS = pytest.mark.parametrize("version", [7, 12, 13, 18])


@SESSIONS
def test_a_session_sends_only_what_changed(cluster, fetch, version):
    for partition in (0, 1):
        cluster.produce("t", NOW_MS, partition=partition)
    opened = fetch(wanted(0), wanted(1), version=version, session_epoch=FULL)
    assert by_partition(opened) == {0: [0], 1: [0]}

    def go_on(*partitions, epoch, **fields):
        answer = fetch(
            *partitions, version=version, session_id=opened.session_id, session_epoch=epoch, **fields
        )
        assert (answer.error_code, answer.session_id) == (ErrorCode.NONE, opened.session_id)
        return by_partition(answer)

    assert go_on(wanted(0, 1), wanted(1, 1), epoch=1) == {}
    cluster.produce("t", NOW_MS, partition=1)
    assert go_on(epoch=2) == {1: [1]}
    assert go_on(wanted(1, 2), wanted(2, 0), epoch=3) == {2: []}  # a partition that is new is shown


@SESSIONS
def test_a_session_forgets_partitions_that_it_is_told_to(cluster, fetch, topic, version):
    opened = fetch(wanted(0), wanted(1), version=version, session_epoch=FULL)
    named = {"topic_id": topic.topic_id} if version >= 13 else {"topic": "t"}
    for partition in (0, 1):
        cluster.produce("t", NOW_MS, partition=partition)
    answer = fetch(
        version=version,
        session_id=opened.session_id,
        session_epoch=1,
        forgotten_topics_data=[ForgottenTopic(**named, partitions=[0])],
    )
    assert by_partition(answer) == {1: [0]}


@SESSIONS
@pytest.mark.parametrize("session_id", [12345, -1])
def test_a_session_that_is_not_there_is_not_found(fetch, version, session_id):
    answer = fetch(wanted(0), version=version, session_id=session_id, session_epoch=1)
    assert (answer.error_code, answer.responses) == (ErrorCode.FETCH_SESSION_ID_NOT_FOUND, [])


@SESSIONS
def test_the_epoch_of_a_session_is_the_next_one(fetch, version):
    opened = fetch(wanted(0), version=version, session_epoch=FULL)
    for epoch in (2, 99):
        answer = fetch(version=version, session_id=opened.session_id, session_epoch=epoch)
        assert (answer.error_code, answer.responses) == (ErrorCode.INVALID_FETCH_SESSION_EPOCH, [])
    assert fetch(version=version, session_id=opened.session_id, session_epoch=1).error_code == 0


@SESSIONS
def test_a_session_that_is_closed_is_gone(fetch, version):
    opened = fetch(wanted(0), version=version, session_epoch=FULL)
    closing = fetch(wanted(0), version=version, session_id=opened.session_id, session_epoch=CLOSE)
    assert (closing.error_code, closing.session_id, by_partition(closing)) == (ErrorCode.NONE, 0, {0: []})
    after = fetch(version=version, session_id=opened.session_id, session_epoch=1)
    assert after.error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND


@pytest.mark.parametrize("version", [4, 6])
def test_before_version_7_there_are_no_sessions(fetch, version):
    assert fetch(wanted(0), version=version).session_id == 0


# leader epochs, as KIP-320, KIP-595 and KIP-951 have them


@pytest.fixture
def third_leader(cluster):
    cluster.broker.cluster.unclean_starts = 3
    cluster.broker.find_log("t", 0).set_leader_epoch(3)


@pytest.mark.parametrize("version", range(9, 19))
def test_another_leader_epoch_than_ours_is_refused(fetch, third_leader, version):
    for epoch, code in (
        (2, ErrorCode.FENCED_LEADER_EPOCH),
        (4, ErrorCode.UNKNOWN_LEADER_EPOCH),
        (3, ErrorCode.NONE),
        (-1, ErrorCode.NONE),
    ):
        (answered,) = fetch(wanted(current_leader_epoch=epoch), version=version).responses
        assert answered.partitions[0].error_code == code


def test_from_version_16_on_a_fenced_client_is_told_who_leads(fetch, third_leader):
    response = fetch(wanted(current_leader_epoch=2), version=16)
    assert response.responses[0].partitions[0].current_leader == LeaderIdAndEpoch(1, 3)
    assert response.node_endpoints == [NodeEndpoint(1, "127.0.0.1", 19092)]
    assert fetch(wanted(current_leader_epoch=2), version=15).node_endpoints == []


@pytest.mark.parametrize(
    ("offset", "last_epoch", "diverging"),
    [
        (0, -1, EpochEndOffset()),
        (2, 0, EpochEndOffset()),
        (3, 0, EpochEndOffset()),
        (9, 0, EpochEndOffset(0, 3)),
    ],
)
def test_a_reader_whose_log_went_another_way_is_told_where(cluster, fetch, offset, last_epoch, diverging):
    cluster.produce("t", NOW_MS, NOW_MS, NOW_MS)
    part = wanted(0, offset, last_fetched_epoch=last_epoch, current_leader_epoch=0)
    (answered,) = fetch(part).responses
    (data,) = answered.partitions
    assert (data.error_code, data.diverging_epoch) == (ErrorCode.NONE, diverging)


# isolation, of which tests/transactions has more


def test_a_committed_reader_waits_for_the_end_of_a_transaction(cluster, read):
    cluster.produce("t", NOW_MS)
    writer = {"producer_id": 7, "producer_epoch": 0, "transactional": True}
    cluster.produce("t", NOW_MS, base_sequence=0, **writer)
    uncommitted, committed = read(isolation_level=0), read(isolation_level=1)
    assert (offsets(uncommitted), uncommitted.aborted_transactions) == ([0, 1], None)
    assert (offsets(committed), committed.aborted_transactions) == ([0], [])
    assert (committed.high_watermark, committed.last_stable_offset) == (2, 1)
