from __future__ import annotations

import pytest

from kbroker.protocol.errors import ErrorCode
from kbroker.protocol.messages.init_producer_id import InitProducerIdRequest

from .transactional_producer import TransactionalProducer

VERSIONS = range(6)


@pytest.fixture
def producer(cluster, request):
    return TransactionalProducer(cluster, request.node.name)


# idempotent producers, which have no transactional id


@pytest.mark.parametrize("version", VERSIONS)
def test_every_producer_gets_an_id_of_its_own_and_epoch_0(cluster, version):
    answers = [cluster.send(InitProducerIdRequest(None, 60_000), version) for _ in range(3)]
    assert {(answer.error_code, answer.producer_epoch) for answer in answers} == {(ErrorCode.NONE, 0)}
    assert len({answer.producer_id for answer in answers}) == 3


@pytest.mark.parametrize("timeout_ms", [0, -1, 2**31 - 1])
def test_without_transactions_the_timeout_does_not_count(cluster, timeout_ms):
    assert cluster.send(InitProducerIdRequest(None, timeout_ms), 4).error_code == ErrorCode.NONE


@pytest.mark.parametrize("version", [3, 4, 5])
def test_a_producer_that_has_an_id_gets_another_one(cluster, version):
    first = cluster.send(InitProducerIdRequest(None, 60_000), version)
    again = cluster.send(InitProducerIdRequest(None, 60_000, first.producer_id, 3), version)
    assert (again.error_code, again.producer_epoch) == (ErrorCode.NONE, 0)
    assert again.producer_id != first.producer_id


@pytest.mark.parametrize("version", [3, 4, 5])
@pytest.mark.parametrize(("producer_id", "epoch"), [(5, -1), (-1, 3)])
def test_a_producer_id_and_its_epoch_come_together(cluster, version, producer_id, epoch):
    answer = cluster.send(InitProducerIdRequest(None, 60_000, producer_id, epoch), version)
    assert (answer.error_code, answer.producer_id, answer.producer_epoch) == (
        ErrorCode.INVALID_REQUEST,
        -1,
        -1,
    )


# transactional producers


@pytest.mark.parametrize("version", VERSIONS)
def test_a_transactional_id_keeps_its_producer_id_and_raises_the_epoch(producer, version):
    answers = [producer.init(version) for _ in range(3)]
    assert len({answer.producer_id for answer in answers}) == 1
    assert [answer.producer_epoch for answer in answers] == [0, 1, 2]
    assert producer.describe().transaction_state == "Empty"


@pytest.mark.parametrize(
    ("timeout_ms", "code"),
    [
        (1, "NONE"),
        (900_000, "NONE"),
        (900_001, "INVALID_TRANSACTION_TIMEOUT"),
        (0, "INVALID_TRANSACTION_TIMEOUT"),
        (-1, "INVALID_TRANSACTION_TIMEOUT"),
    ],
)
def test_the_timeout_of_a_transaction_lies_within_that_of_the_broker(producer, timeout_ms, code):
    answer = producer.init(timeout_ms=timeout_ms)
    assert ErrorCode(answer.error_code).name == code


@pytest.mark.parametrize("version", VERSIONS)
def test_an_empty_transactional_id_is_refused(cluster, version):
    answer = cluster.send(InitProducerIdRequest("", 60_000), version)
    assert (answer.error_code, answer.producer_id) == (ErrorCode.INVALID_REQUEST, -1)


@pytest.mark.parametrize("version", [3, 4, 5])
def test_a_producer_goes_on_after_an_error_with_the_epoch_it_has(producer, version):
    first = producer.init(version)
    has = {"producer_id": first.producer_id, "producer_epoch": first.producer_epoch}
    assert producer.init(version, **has).producer_epoch == 1
    assert producer.init(version, **has).producer_epoch == 1  # the same request again
    assert producer.init(version, producer_id=first.producer_id, producer_epoch=1).producer_epoch == 2


@pytest.mark.parametrize("version", [3, 4, 5])
def test_a_producer_whose_epoch_is_not_the_last_one_is_fenced(producer, version):
    first = producer.init(version)
    producer.init(version)
    producer.init(version)
    fenced = ErrorCode.PRODUCER_FENCED if version >= 4 else ErrorCode.INVALID_PRODUCER_EPOCH
    for producer_id, epoch in (
        (first.producer_id, 0),
        (first.producer_id, 77),
        (first.producer_id + 1_000_000, 0),
    ):
        answer = producer.init(version, producer_id=producer_id, producer_epoch=epoch)
        assert (answer.error_code, answer.producer_id, answer.producer_epoch) == (fenced, -1, -1)


def test_a_transactional_id_that_was_forgotten_begins_anew(producer):
    answer = producer.init(4, producer_id=123_456_789, producer_epoch=5)
    assert (answer.error_code, answer.producer_epoch) == (ErrorCode.NONE, 0)
    assert answer.producer_id != 123_456_789


def test_a_new_producer_ends_the_transaction_of_the_one_before(cluster, producer):
    cluster.create("t")
    producer.init()
    producer.add("t")
    producer.produce("t")
    other = TransactionalProducer(cluster, producer.transactional_id)
    assert other.init().error_code == ErrorCode.CONCURRENT_TRANSACTIONS  # it is being aborted
    assert other.init().error_code == ErrorCode.NONE
    assert (other.producer_id, other.epoch > producer.epoch) == (producer.producer_id, True)
    assert producer.end().error_code == ErrorCode.PRODUCER_FENCED
