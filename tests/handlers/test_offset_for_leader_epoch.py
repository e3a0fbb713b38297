from __future__ import annotations

import pytest

from kbroker.protocol.errors import ErrorCode
from kbroker.protocol.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)

from .conftest import on_late_logs_too

pytestmark = on_late_logs_too

T = 1_699_999_000_000


@pytest.fixture
def ask(cluster):
    def ask(leader_epoch: int, current: int = -1, version: int = 4, partition: int = 0, topic: str = "t"):
        asked = OffsetForLeaderPartition(partition, current, leader_epoch)
        request = OffsetForLeaderEpochRequest(topics=[OffsetForLeaderTopic(topic, [asked])])
        (answered,) = cluster.send(request, version).topics
        (result,) = answered.partitions
        assert (answered.topic, result.partition) == (topic, partition)
        return result.error_code, result.leader_epoch, result.end_offset

    return ask


@pytest.fixture(autouse=True)
def log(cluster):
    """Epoch 0 holds offsets 0 and 1, epoch 3 offset 2, epoch 5 has begun and holds nothing."""
    cluster.create("t")
    log = cluster.broker.find_log("t", 0)
    cluster.produce("t", T, T)
    log.set_leader_epoch(3)
    cluster.produce("t", T)
    log.set_leader_epoch(5)
    return log


@pytest.mark.parametrize("version", [1, 2, 3, 4])
@pytest.mark.parametrize(
    ("asked", "answer"),
    [(0, (0, 2)), (2, (0, 2)), (3, (3, 3)), (4, (3, 3)), (5, (5, 3)), (6, (-1, -1)), (-1, (-1, -1))],
)
def test_the_answer_is_the_largest_epoch_at_or_below_the_asked_one(ask, version, asked, answer):
    assert ask(asked, version=version) == (ErrorCode.NONE, *answer)


def test_version_0_answers_without_the_epoch(ask):
    assert ask(3, version=0) == (ErrorCode.NONE, -1, 3)


def test_an_epoch_that_was_deleted_ends_at_the_log_start(ask, log):
    log.delete_records_before(2)
    assert ask(0) == (ErrorCode.NONE, 0, 2)


def test_a_log_never_written_ends_at_0_in_the_current_epoch(cluster, ask):
    cluster.create("empty")
    assert ask(0, topic="empty") == (ErrorCode.NONE, 0, 0)


@pytest.mark.parametrize(
    ("current", "code"),
    [(4, ErrorCode.FENCED_LEADER_EPOCH), (6, ErrorCode.UNKNOWN_LEADER_EPOCH), (5, ErrorCode.NONE)],
)
def test_another_current_leader_epoch_than_ours_is_refused(ask, current, code):
    assert ask(0, current=current) == (code, *((0, 2) if code == ErrorCode.NONE else (-1, -1)))


@pytest.mark.parametrize(("topic", "partition"), [("nope", 0), ("t", 1), ("t", -1)])
def test_an_unknown_partition_is_reported(ask, topic, partition):
    code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert ask(0, topic=topic, partition=partition) == (code, -1, -1)
