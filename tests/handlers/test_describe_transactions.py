from __future__ import annotations

import pytest

from kbroker.protocol.errors import ErrorCode
from kbroker.protocol.messages.describe_transactions import DescribeTransactionsRequest

from .transactional_producer import TransactionalProducer


@pytest.fixture
def producer(cluster, request):
    cluster.create("t", partitions=2)
    cluster.create("u")
    producer = TransactionalProducer(cluster, request.node.name)
    producer.init(timeout_ms=30_000)
    return producer


def describe(cluster, *transactional_ids):
    return cluster.send(DescribeTransactionsRequest(list(transactional_ids)), 0).transaction_states


def test_a_producer_without_a_transaction_has_an_empty_one(producer):
    state = producer.describe()
    assert (state.error_code, state.transactional_id) == (ErrorCode.NONE, producer.transactional_id)
    assert (state.transaction_state, state.transaction_timeout_ms) == ("Empty", 30_000)
    assert (state.producer_id, state.producer_epoch) == (producer.producer_id, 0)
    assert (state.transaction_start_time_ms, state.topics) == (-1, [])


def test_an_open_transaction_has_its_partitions_and_the_time_of_its_begin(producer):
    before_ms = producer.cluster.now_ms
    producer.add("t", 1, 0)
    producer.add("u")
    state = producer.describe()
    assert state.transaction_state == "Ongoing"
    assert before_ms <= state.transaction_start_time_ms <= producer.cluster.now_ms
    assert {topic.topic: sorted(topic.partitions) for topic in state.topics} == {"t": [0, 1], "u": [0]}


@pytest.mark.parametrize(("commit", "name"), [(True, "CompleteCommit"), (False, "CompleteAbort")])
def test_an_ended_transaction_has_its_end_and_no_partitions(producer, commit, name):
    producer.add("t")
    producer.end(commit=commit)
    state = producer.describe()
    assert (state.transaction_state, state.topics) == (name, [])


@pytest.mark.parametrize(
    ("transactional_id", "code"),
    [("unknown", ErrorCode.TRANSACTIONAL_ID_NOT_FOUND), ("", ErrorCode.INVALID_REQUEST)],
)
def test_what_is_not_there_is_not_found_and_does_not_disturb_others(
    cluster, producer, transactional_id, code
):
    missing, found = describe(cluster, transactional_id, producer.transactional_id)
    assert (missing.error_code, missing.transactional_id) == (code, transactional_id)
    assert (missing.transaction_state, missing.topics) == ("", [])
    assert found.error_code == ErrorCode.NONE


def test_nothing_is_described_where_nothing_is_asked_for(cluster):
    assert describe(cluster) == []
