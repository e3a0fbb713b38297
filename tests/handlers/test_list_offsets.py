from __future__ import annotations

from typing import Any

import pytest

from kbroker.pending import Pending
from kbroker.protocol.errors import ErrorCode
from kbroker.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from kbroker.storage.interface import TimestampOffset

from .conftest import on_late_logs_too

pytestmark = on_late_logs_too

LATEST, EARLIEST, MAX_TIMESTAMP, EARLIEST_LOCAL, LATEST_TIERED, EARLIEST_PENDING = -1, -2, -3, -4, -5, -6
T = 1_699_999_000_000


def request(*partitions: ListOffsetsPartition, topic: str = "t", **fields: Any) -> ListOffsetsRequest:
    return ListOffsetsRequest(
        **{"replica_id": -1, **fields}, topics=[ListOffsetsTopic(topic, list(partitions))]
    )


@pytest.fixture
def ask(cluster):
    def ask(timestamp: int, version: int = 11, *, epoch: int = -1, partition: int = 0, **fields: Any):
        asked = ListOffsetsPartition(partition, epoch, timestamp)
        (topic,) = cluster.send(request(asked, **fields), version).topics
        (answer,) = topic.partitions
        return answer

    return ask


def found(offset: int, timestamp: int = -1, epoch: int = 0) -> ListOffsetsPartitionResponse:
    return ListOffsetsPartitionResponse(0, 0, [], timestamp, offset, epoch)


NOTHING = ListOffsetsPartitionResponse(0)


@pytest.fixture(autouse=True)
def topic(cluster):
    return cluster.create("t", partitions=2)


@pytest.mark.parametrize("version", range(1, 12))
def test_the_ends_of_a_log_are_known_at_every_version(cluster, ask, version):
    cluster.produce("t", T, T + 1, T + 2)
    cluster.broker.find_log("t", 0).delete_records_before(1)
    epoch = 0 if version >= 4 else -1
    assert ask(LATEST, version) == found(3, epoch=epoch)
    assert ask(EARLIEST, version) == found(1, epoch=epoch)


def test_an_empty_log_begins_and_ends_at_0_in_the_current_leader_epoch(ask):
    for timestamp in (LATEST, EARLIEST, EARLIEST_LOCAL):
        assert ask(timestamp) == found(0)
    for timestamp in (MAX_TIMESTAMP, LATEST_TIERED, EARLIEST_PENDING, 0, T):
        assert ask(timestamp) == NOTHING


def test_a_timestamp_finds_the_first_record_at_or_after_it(cluster, ask):
    cluster.produce("t", T, T + 5, T + 2)
    cluster.produce("t", T + 9, T + 3)
    assert ask(T - 1) == found(0, T)
    assert ask(T + 1) == found(1, T + 5)
    assert ask(T + 6) == found(3, T + 9)
    assert ask(T + 10) == NOTHING


def test_the_max_timestamp_is_that_of_its_first_record(cluster, ask):
    cluster.produce("t", T, T + 9, T + 9)
    cluster.produce("t", T + 3)
    assert ask(MAX_TIMESTAMP) == found(1, T + 9)


@pytest.mark.parametrize(
    ("timestamp", "since"),
    [(MAX_TIMESTAMP, 7), (EARLIEST_LOCAL, 8), (LATEST_TIERED, 9), (EARLIEST_PENDING, 11)],
)
def test_special_timestamps_are_unsupported_before_their_version(ask, timestamp, since):
    assert ask(timestamp, since - 1).error_code == ErrorCode.UNSUPPORTED_VERSION
    assert ask(timestamp, since).error_code == ErrorCode.NONE


@pytest.mark.parametrize("timestamp", [-7, -100, -(1 << 63)])
def test_other_negative_timestamps_are_unsupported(ask, timestamp):
    answer = ask(timestamp)
    assert (answer.error_code, answer.offset) == (ErrorCode.UNSUPPORTED_VERSION, -1)


def test_read_committed_sees_up_to_the_last_stable_offset(cluster, ask):
    cluster.produce("t", T)
    cluster.produce("t", T + 1, T + 2, producer_id=5, producer_epoch=0, base_sequence=0, transactional=True)
    assert ask(LATEST, isolation_level=0) == found(3)
    assert ask(LATEST, isolation_level=1) == found(1)
    assert ask(T + 1, isolation_level=0) == found(1, T + 1)
    assert ask(T + 1, isolation_level=1) == NOTHING
    assert ask(MAX_TIMESTAMP, isolation_level=1) == NOTHING
    assert ask(LATEST, isolation_level=1, replica_id=-2) == found(3)


def test_an_unknown_isolation_level_is_an_unknown_server_error(ask):
    assert ask(LATEST, isolation_level=2).error_code == ErrorCode.UNKNOWN_SERVER_ERROR


def test_another_leader_epoch_than_the_current_one_is_refused(cluster, ask):
    cluster.broker.find_log("t", 0).set_leader_epoch(3)
    assert ask(LATEST, epoch=3) == found(0, epoch=3)
    assert ask(LATEST, epoch=2).error_code == ErrorCode.FENCED_LEADER_EPOCH
    assert ask(LATEST, epoch=4).error_code == ErrorCode.UNKNOWN_LEADER_EPOCH
    assert ask(LATEST, epoch=-1).error_code == ErrorCode.NONE


def test_the_earliest_offset_carries_the_epoch_of_the_log_start(cluster, ask):
    cluster.produce("t", T)
    log = cluster.broker.find_log("t", 0)
    log.set_leader_epoch(2)
    cluster.produce("t", T)
    log.set_leader_epoch(5)
    assert ask(EARLIEST) == found(0, epoch=0)
    log.delete_records_before(1)
    assert ask(EARLIEST) == found(1, epoch=2)
    log.delete_records_before(2)
    assert ask(EARLIEST) == found(2, epoch=5)


@pytest.mark.parametrize(("topic_name", "partition"), [("nope", 0), ("t", 2), ("t", -1), ("", 0)])
def test_an_unknown_partition_is_reported(ask, topic_name, partition):
    answer = ask(LATEST, partition=partition, topic=topic_name)
    assert (answer.error_code, answer.offset) == (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1)


def test_a_partition_named_twice_is_an_invalid_request_and_answered_once(cluster):
    (topic,) = cluster.send(
        request(ListOffsetsPartition(0, -1, LATEST), ListOffsetsPartition(1), ListOffsetsPartition(0)), 11
    ).topics
    assert [(p.partition_index, p.error_code) for p in topic.partitions] == [
        (0, ErrorCode.INVALID_REQUEST),
        (1, ErrorCode.NONE),
    ]


def test_a_topic_without_partitions_is_left_out(cluster):
    assert cluster.send(request(), 11).topics == []


def test_an_answer_that_needs_the_disk_comes_later(cluster, monkeypatch):
    log = cluster.broker.find_log("t", 0)
    cluster.produce("t", T, T)
    waiting: Pending[TimestampOffset | None] = Pending()
    monkeypatch.setattr(log, "offset_for_timestamp", lambda timestamp: waiting)
    asked = [ListOffsetsPartition(0, -1, T), ListOffsetsPartition(1, -1, LATEST)]
    answer = cluster.send(request(*asked), 11)
    assert not answer.done
    waiting.resolve(TimestampOffset(T, 1, 0))
    (topic,) = answer.result().topics
    assert topic.partitions[0] == found(1, T)
    assert topic.partitions[1].error_code == ErrorCode.NONE


def test_a_failed_look_up_fails_its_partition_alone(cluster, monkeypatch):
    from kbroker.storage.errors import LogFenced

    waiting: Pending[TimestampOffset | None] = Pending()
    monkeypatch.setattr(cluster.broker.find_log("t", 0), "offset_for_timestamp", lambda timestamp: waiting)
    answer = cluster.send(request(ListOffsetsPartition(0, -1, T), ListOffsetsPartition(1, -1, LATEST)), 11)
    waiting.fail(LogFenced())
    (topic,) = answer.result().topics
    assert [p.error_code for p in topic.partitions] == [ErrorCode.KAFKA_STORAGE_ERROR, ErrorCode.NONE]


def test_version_0_answers_with_a_list_in_falling_order(cluster):
    cluster.produce("t", T, T + 1, T + 2)
    cluster.broker.find_log("t", 0).delete_records_before(1)

    def offsets(timestamp: int, count: int) -> list[int]:
        asked = ListOffsetsPartition(0, timestamp=timestamp, max_num_offsets=count)
        return cluster.send(request(asked), 0).topics[0].partitions[0].old_style_offsets

    assert offsets(LATEST, 1) == [3]
    assert offsets(LATEST, 10) == [3, 1]
    assert offsets(EARLIEST, 10) == [1]
    assert offsets(T + 2, 1) == [2]
    assert offsets(T + 100, 1) == [3]
    assert offsets(LATEST, 0) == []
