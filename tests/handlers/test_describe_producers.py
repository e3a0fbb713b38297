from __future__ import annotations

import pytest

from kbroker.protocol.errors import ErrorCode
from kbroker.protocol.messages.describe_producers import (
    DescribeProducersRequest,
    ProducerState,
    TopicRequest,
)

from .conftest import on_late_logs_too

pytestmark = on_late_logs_too

T = 1_699_999_000_000


@pytest.fixture(autouse=True)
def topic(cluster):
    cluster.create("t", partitions=2)


def describe(cluster, *topics: tuple[str, list[int]]):
    request = DescribeProducersRequest(topics=[TopicRequest(name, partitions) for name, partitions in topics])
    return [partition for topic in cluster.send(request, 0).topics for partition in topic.partitions]


def test_a_partition_remembers_its_idempotent_producers(cluster):
    cluster.produce("t", T)  # without a producer id: not remembered
    cluster.produce("t", T + 1, T + 2, producer_id=7, producer_epoch=3, base_sequence=0)
    written, other = describe(cluster, ("t", [0, 1]))
    assert written.active_producers == [ProducerState(7, 3, 1, T + 2, -1, -1)]
    assert other.active_producers == []
    assert (written.error_code, written.error_message) == (ErrorCode.NONE, None)


def test_an_open_transaction_shows_where_it_began(cluster):
    cluster.produce("t", T)
    cluster.produce("t", T, producer_id=7, producer_epoch=0, base_sequence=0, transactional=True)
    (partition,) = describe(cluster, ("t", [0]))
    assert partition.active_producers[0].current_txn_start_offset == 1


def test_unknown_partitions_and_names_that_cannot_be_are_told_apart(cluster):
    answers = describe(cluster, ("t", [2, -1]), ("nope", [0]), ("no name", [0]), ("", [0]))
    unknown, invalid = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.INVALID_TOPIC_EXCEPTION
    assert [answer.error_code for answer in answers] == [unknown, unknown, unknown, invalid, invalid]
    assert [answer.error_message is not None for answer in answers] == [False, False, True, True, True]
