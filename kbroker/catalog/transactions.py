"""Transactions as rows, one per transactional id: the transaction coordinator's store."""

from __future__ import annotations

import json
import sqlite3

from kbroker.catalog.database import Database
from kbroker.coordinators.transactions.transaction import TopicPartition, Transaction, TransactionState
from kbroker.storage.pending import Pending

_COLUMNS = (
    "transactional_id, producer_id, producer_epoch, timeout_ms, last_update_ms, state, partitions, start_ms, "
    "previous_producer_id, next_producer_id, last_producer_epoch, transaction_version"
)


class CatalogTransactionStore:
    def __init__(self, database: Database, *, stored: bool = True) -> None:
        """`stored`: there may be something to load."""
        self._database = database
        self._stored = stored

    def load(self) -> list[Transaction]:
        if not self._stored:
            return []
        return self._database.read(
            lambda connection: [
                _transaction(*row) for row in connection.execute(f"SELECT {_COLUMNS} FROM transactions")
            ]
        )

    def save(self, transaction: Transaction) -> Pending[None]:
        row = (
            transaction.transactional_id,
            transaction.producer_id,
            transaction.producer_epoch,
            transaction.timeout_ms,
            transaction.last_update_ms,
            transaction.state,
            json.dumps(sorted(transaction.partitions), separators=(",", ":")),
            transaction.start_ms,
            transaction.previous_producer_id,
            transaction.next_producer_id,
            transaction.last_producer_epoch,
            transaction.transaction_version,
        )

        def write(connection: sqlite3.Connection) -> None:
            connection.execute(
                f"INSERT OR REPLACE INTO transactions ({_COLUMNS}) "
                "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                row,
            )

        return self._database.write(write)

    def delete(self, transactional_id: str) -> Pending[None]:
        def write(connection: sqlite3.Connection) -> None:
            connection.execute("DELETE FROM transactions WHERE transactional_id = ?", (transactional_id,))

        return self._database.write(write)


def _transaction(
    transactional_id: str,
    producer_id: int,
    producer_epoch: int,
    timeout_ms: int,
    last_update_ms: int,
    state: str,
    partitions: str,
    *rest: int,
) -> Transaction:
    return Transaction(
        transactional_id,
        producer_id,
        producer_epoch,
        timeout_ms,
        last_update_ms,
        TransactionState(state),
        frozenset(TopicPartition(*partition) for partition in json.loads(partitions)),
        *rest,
    )
