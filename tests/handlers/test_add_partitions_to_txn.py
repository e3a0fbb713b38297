from __future__ import annotations

import pytest

from kbroker.protocol.errors import ErrorCode
from kbroker.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)

from .transactional_producer import TransactionalProducer

FOR_CLIENTS, FOR_BROKERS = range(4), [4, 5]
NONE = ErrorCode.NONE


@pytest.fixture
def producer(cluster, request):
    cluster.create("t", partitions=2)
    producer = TransactionalProducer(cluster, request.node.name)
    producer.init()
    return producer


@pytest.mark.parametrize("version", FOR_CLIENTS)
def test_partitions_become_part_of_the_transaction(producer, version):
    assert producer.add("t", 1, version=version) == {1: NONE}
    assert producer.add("t", 0, 1, version=version) == {0: NONE, 1: NONE}
    assert (producer.describe().transaction_state, producer.partitions) == ("Ongoing", {"t": [0, 1]})


@pytest.mark.parametrize("version", FOR_CLIENTS)
def test_all_partitions_are_added_or_none(producer, version):
    unknown, not_attempted = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.OPERATION_NOT_ATTEMPTED
    assert producer.add("t", 0, 7, version=version) == {0: not_attempted, 7: unknown}
    assert producer.add("missing", 0, version=version) == {0: unknown}
    assert (producer.describe().transaction_state, producer.partitions) == ("Empty", {})


@pytest.mark.parametrize("version", FOR_CLIENTS)
def test_only_the_producer_of_a_transactional_id_adds_to_its_transaction(producer, version):
    fenced = ErrorCode.PRODUCER_FENCED if version >= 2 else ErrorCode.INVALID_PRODUCER_EPOCH
    for fields, code in (
        ({"v3_and_below_producer_id": 99_999_999}, ErrorCode.INVALID_PRODUCER_ID_MAPPING),
        ({"v3_and_below_transactional_id": "unknown"}, ErrorCode.INVALID_PRODUCER_ID_MAPPING),
        ({"v3_and_below_producer_epoch": 7}, fenced),
        ({"v3_and_below_transactional_id": ""}, ErrorCode.INVALID_REQUEST),
    ):
        assert producer.add("t", version=version, **fields) == {0: code}, fields
    assert producer.describe().transaction_state == "Empty"


@pytest.fixture
def add_as_broker(producer):
    """(transactional id, partition) -> error code."""

    def add_as_broker(*transactions, version):
        asked = [
            AddPartitionsToTxnTransaction(
                **{
                    "transactional_id": producer.transactional_id,
                    "producer_id": producer.producer_id,
                    "producer_epoch": producer.epoch,
                    **fields,
                },
                topics=[AddPartitionsToTxnTopic("t", partitions)],
            )
            for partitions, fields in transactions
        ]
        answer = producer.cluster.send(AddPartitionsToTxnRequest(asked), version)
        assert answer.error_code == NONE
        return {
            (result.transactional_id, each.partition_index): ErrorCode(each.partition_error_code)
            for result in answer.results_by_transaction
            for topic in result.topic_results
            for each in topic.results_by_partition
        }

    return add_as_broker


@pytest.mark.parametrize("version", FOR_BROKERS)
def test_brokers_add_to_several_transactions_at_once(producer, add_as_broker, version):
    own = producer.transactional_id
    codes = add_as_broker(([0, 1], {}), ([0], {"transactional_id": "unknown"}), version=version)
    assert codes == {
        (own, 0): NONE,
        (own, 1): NONE,
        ("unknown", 0): ErrorCode.INVALID_PRODUCER_ID_MAPPING,
    }
    assert producer.partitions == {"t": [0, 1]}


@pytest.mark.parametrize("version", FOR_BROKERS)
def test_brokers_may_only_ask_whether_partitions_are_in_a_transaction(producer, add_as_broker, version):
    own, ask = producer.transactional_id, {"verify_only": True}
    missing = ErrorCode.TRANSACTION_ABORTABLE
    assert add_as_broker(([0, 1], ask), version=version) == {(own, 0): missing, (own, 1): missing}
    producer.add("t", 0)
    assert add_as_broker(([0, 1], ask), version=version) == {(own, 0): NONE, (own, 1): missing}
    assert producer.partitions == {"t": [0]}


@pytest.mark.parametrize("version", FOR_BROKERS)
def test_brokers_that_ask_for_another_producer_are_refused(producer, add_as_broker, version):
    producer.add("t", 0)
    own = producer.transactional_id
    for fields, code in (
        ({"producer_epoch": 3}, ErrorCode.PRODUCER_FENCED),
        ({"producer_id": 99_999_999}, ErrorCode.INVALID_PRODUCER_ID_MAPPING),
    ):
        assert add_as_broker(([0], {"verify_only": True, **fields}), version=version) == {(own, 0): code}
    assert add_as_broker(([0, 5], {"verify_only": True}), version=version) == {
        (own, 0): ErrorCode.OPERATION_NOT_ATTEMPTED,
        (own, 5): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }
