from __future__ import annotations

import pytest

from kbroker.protocol.errors import ErrorCode

from .transactional_producer import TransactionalProducer

BOTH_ENDS = pytest.mark.parametrize("commit", [True, False], ids=["commit", "abort"])
NONE, INVALID_TXN_STATE = ErrorCode.NONE, ErrorCode.INVALID_TXN_STATE


@pytest.fixture
def producer(cluster, request):
    """One that has written one record in a transaction."""
    cluster.create("t")
    producer = TransactionalProducer(cluster, request.node.name)
    producer.init()
    producer.add("t")
    producer.produce("t")
    return producer


@BOTH_ENDS
@pytest.mark.parametrize("version", range(5))
def test_a_transaction_ends(producer, version, commit):
    answer = producer.end(commit=commit, version=version)
    assert (answer.error_code, answer.producer_id, answer.producer_epoch) == (NONE, -1, -1)
    assert producer.describe().transaction_state == ("CompleteCommit" if commit else "CompleteAbort")
    assert producer.cluster.end_offset("t") == 2  # the record and the marker


@BOTH_ENDS
def test_from_version_5_on_the_end_raises_the_epoch(producer, commit):
    before = producer.epoch
    answer = producer.end(commit=commit, version=5)
    assert (answer.error_code, answer.producer_id) == (NONE, producer.producer_id)
    assert answer.producer_epoch == before + 1
    assert producer.describe().producer_epoch == before + 1


@BOTH_ENDS
@pytest.mark.parametrize("version", range(5))
def test_an_end_may_be_asked_for_again_and_not_turned_round(producer, version, commit):
    producer.end(commit=commit, version=version)
    assert producer.end(commit=commit, version=version).error_code == NONE
    assert producer.end(commit=not commit, version=version).error_code == INVALID_TXN_STATE
    assert producer.cluster.end_offset("t") == 2


@BOTH_ENDS
def test_at_version_5_too_by_the_epoch_before(producer, commit):
    before = {"producer_epoch": producer.epoch}
    first = producer.end(commit=commit, version=5)
    again = producer.end(commit=commit, version=5, **before)
    assert (again.error_code, again.producer_epoch) == (NONE, first.producer_epoch)
    assert producer.end(commit=not commit, version=5, **before).error_code == INVALID_TXN_STATE


@pytest.mark.parametrize("version", range(5))
def test_without_a_transaction_there_is_nothing_to_end(cluster, request, version):
    producer = TransactionalProducer(cluster, request.node.name)
    producer.init()
    for commit in (True, False):
        assert producer.end(commit=commit, version=version).error_code == INVALID_TXN_STATE


def test_at_version_5_an_abort_of_nothing_raises_the_epoch(cluster, request):
    producer = TransactionalProducer(cluster, request.node.name)
    producer.init()
    assert producer.end(version=5).error_code == INVALID_TXN_STATE
    answer = producer.end(commit=False, version=5)
    assert (answer.error_code, answer.producer_epoch) == (NONE, 1)


@BOTH_ENDS
@pytest.mark.parametrize("version", range(6))
def test_only_the_producer_of_a_transaction_ends_it(producer, version, commit):
    fenced = ErrorCode.PRODUCER_FENCED if version >= 2 else ErrorCode.INVALID_PRODUCER_EPOCH
    for fields, code in (
        ({"producer_id": 99_999_999}, ErrorCode.INVALID_PRODUCER_ID_MAPPING),
        ({"transactional_id": "unknown"}, ErrorCode.INVALID_PRODUCER_ID_MAPPING),
        ({"producer_epoch": producer.epoch + 5}, fenced),
    ):
        answer = producer.end(commit=commit, version=version, **fields)
        assert (answer.error_code, answer.producer_id) == (code, -1), fields
    assert producer.describe().transaction_state == "Ongoing"


@pytest.mark.parametrize("version", [3, 5])
def test_an_empty_transactional_id_is_refused(producer, version):
    answer = producer.end(version=version, transactional_id="")
    assert answer.error_code == ErrorCode.INVALID_REQUEST
