"""What is in `__transaction_state`: the transaction of every transactional id."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from kbroker.coordinators.transactions.transaction import Transaction, TransactionState
from kbroker.protocol.coordinator_records import encode_key, encode_value
from kbroker.protocol.coordinator_records.transactions import (
    NEWEST,
    PartitionsSchema,
    TransactionLogKey,
    TransactionLogValue,
)
from kbroker.requests.long_requests import Steps

if TYPE_CHECKING:
    from kbroker.coordinators.transactions.coordinator import TransactionCoordinator
    from kbroker.internal_topics.topic import KeyedRecord, Write

_STATUS = {
    TransactionState.EMPTY: 0,
    TransactionState.ONGOING: 1,
    TransactionState.PREPARE_COMMIT: 2,
    TransactionState.PREPARE_ABORT: 3,
    TransactionState.COMPLETE_COMMIT: 4,
    TransactionState.COMPLETE_ABORT: 5,
    TransactionState.DEAD: 6,
    TransactionState.PREPARE_EPOCH_FENCE: 7,
}


class TransactionSource:
    def __init__(self, coordinator: Callable[[], TransactionCoordinator]) -> None:
        self._coordinator = coordinator

    def follow(self, write: Write) -> None:
        self._coordinator().follower = lambda transactional_id, transaction: write(
            transactional_id, (transaction_record(transactional_id, transaction),)
        )

    def unfollow(self) -> None:
        self._coordinator().follower = None

    def all_records(self, write: Write) -> Steps[None]:
        transactions = self._coordinator().transactions
        for transactional_id in list(transactions):
            transaction = transactions.get(transactional_id)
            if transaction is not None:
                write(transactional_id, (transaction_record(transactional_id, transaction),))
            yield None


def transaction_record(transactional_id: str, transaction: Transaction | None) -> KeyedRecord:
    key = encode_key(TransactionLogKey(transactional_id))
    if transaction is None:
        return key, None
    by_topic: dict[str, list[int]] = {}
    for topic, partition in sorted(transaction.partitions):
        by_topic.setdefault(topic, []).append(partition)
    value = TransactionLogValue(
        producer_id=transaction.producer_id,
        previous_producer_id=transaction.previous_producer_id,
        next_producer_id=transaction.next_producer_id,
        producer_epoch=transaction.producer_epoch,
        transaction_timeout_ms=transaction.timeout_ms,
        transaction_status=_STATUS[transaction.state],
        transaction_partitions=(
            None
            if transaction.state is TransactionState.EMPTY
            else [PartitionsSchema(*each) for each in by_topic.items()]
        ),
        transaction_last_update_timestamp_ms=transaction.last_update_ms,
        transaction_start_timestamp_ms=transaction.start_ms,
        client_transaction_version=transaction.transaction_version,
    )
    return key, encode_value(value, NEWEST)
