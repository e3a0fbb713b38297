from __future__ import annotations

import pytest

from kbroker.protocol.errors import ErrorCode
from kbroker.protocol.messages.list_transactions import ListTransactionsRequest

from .transactional_producer import TransactionalProducer


@pytest.fixture
def producer(cluster):
    """One with an open transaction; another one, named idle, has none."""
    cluster.create("t")
    TransactionalProducer(cluster, "idle").init()
    producer = TransactionalProducer(cluster, "busy")
    producer.init()
    producer.add("t")
    return producer


@pytest.fixture
def listed(cluster, producer):
    """The transactional ids that are listed, with their states."""

    def listed(version=0, **filters):
        answer = cluster.send(ListTransactionsRequest(**filters), version)
        assert answer.error_code == ErrorCode.NONE
        return {each.transactional_id: each.transaction_state for each in answer.transaction_states}

    return listed


@pytest.mark.parametrize("version", range(3))
def test_all_transactional_ids_are_listed(listed, version):
    assert listed(version) == {"busy": "Ongoing", "idle": "Empty"}


def test_a_transactional_id_is_listed_with_its_producer_id(cluster, producer):
    answer = cluster.send(ListTransactionsRequest(["Ongoing"]), 0)
    assert [each.producer_id for each in answer.transaction_states] == [producer.producer_id]


@pytest.mark.parametrize(
    ("states", "names", "unknown"),
    [
        (["Ongoing"], ["busy"], []),
        (["Empty", "Ongoing"], ["busy", "idle"], []),
        (["CompleteAbort"], [], []),
        (["Empty", "Nonsense", "ongoing"], ["idle"], ["Nonsense", "ongoing"]),
        (["Nonsense"], [], ["Nonsense"]),
    ],
)
def test_states_are_filtered_and_those_that_do_not_exist_given_back(cluster, listed, states, names, unknown):
    assert sorted(listed(state_filters=states)) == names
    answer = cluster.send(ListTransactionsRequest(states), 0)
    assert sorted(answer.unknown_state_filters) == sorted(unknown)


def test_producer_ids_are_filtered(listed, producer):
    assert list(listed(producer_id_filters=[producer.producer_id])) == ["busy"]
    assert listed(producer_id_filters=[999_999_999]) == {}


def test_from_version_1_on_transactions_that_began_lately_are_left_out(listed):
    assert sorted(listed(1, duration_filter=-1)) == ["busy", "idle"]
    assert list(listed(1, duration_filter=1_000_000)) == ["idle"]  # as in Kafka: it has no begin


@pytest.mark.parametrize(
    ("pattern", "names"),
    [
        (None, ["busy", "idle"]),
        ("", ["busy", "idle"]),
        ("bu.*", ["busy"]),
        ("bu", []),
        ("busy|idle", ["busy", "idle"]),
    ],
)
def test_from_version_2_on_transactional_ids_match_a_pattern_as_a_whole(listed, pattern, names):
    assert sorted(listed(2, transactional_id_pattern=pattern)) == names


@pytest.mark.parametrize("pattern", ["(", "(?=a)"])
def test_a_pattern_that_is_none_is_refused(cluster, producer, pattern):
    answer = cluster.send(ListTransactionsRequest(transactional_id_pattern=pattern), 2)
    assert (answer.error_code, answer.transaction_states) == (ErrorCode.INVALID_REGULAR_EXPRESSION, [])
