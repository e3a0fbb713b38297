"""Transactions as rows, one per transactional id: the transaction coordinator's store.

Where it may, a change is journaled (see journaled_table), which outlives the process as well. A second later,
or with the next change that is not journaled, the last one of every transactional id is applied to the table.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping
from typing import Any

from kbroker.catalog.errors import CatalogError
from kbroker.catalog.sqlite.database import Database
from kbroker.catalog.sqlite.journal import Journal
from kbroker.catalog.sqlite.journaled_table import JournaledTable
from kbroker.catalog.sqlite.later_applying import LaterApplying
from kbroker.catalog.sqlite.stored import TRANSACTIONS_APPLIED
from kbroker.coordinators.transactions.transaction import TopicPartition, Transaction, TransactionState
from kbroker.pending import Pending
from kbroker.scheduler import Scheduler

_COLUMNS = (
    "transactional_id, producer_id, producer_epoch, timeout_ms, last_update_ms, state, partitions, start_ms, "
    "previous_producer_id, next_producer_id, last_producer_epoch, transaction_version"
)
_encode = json.JSONEncoder(separators=(",", ":")).encode

Row = tuple[Any, ...]


class SqliteTransactionStore:
    def __init__(
        self, database: Database, journal: Journal, scheduler: Scheduler | None, *, stored: bool
    ) -> None:
        """`journal`: where changes may stand that the database lacks. `scheduler`: for putting more there;
        without it every change is a transaction of the database. `stored`: there may be something to load.
        """
        self._database = database
        self._table: JournaledTable[Row] = JournaledTable(database, journal, TRANSACTIONS_APPLIED, _insert)
        self._scheduler = scheduler
        self._applying = None if scheduler is None else LaterApplying(self._table, scheduler)
        self._stored = stored

    def load(self) -> list[Transaction]:
        if not self._stored:
            return []
        unapplied = self._table.recover("transactions", _decode)
        if self._applying is not None:
            self._applying.apply_rest()
        rows: dict[str, Row] = self._database.read(
            lambda connection: {
                row[0]: row for row in connection.execute(f"SELECT {_COLUMNS} FROM transactions")
            }
        )
        for changes in unapplied:
            rows.update(changes)
        return [_transaction(*row) for row in rows.values()]

    def save(self, transaction: Transaction) -> Pending[None]:
        row = _row(transaction)
        scheduler, applying = self._scheduler, self._applying
        if scheduler is None or applying is None or not self._table.journals:
            return self._table.write(lambda connection: _insert(connection, {row[0]: row}))
        saved: Pending[None] = Pending()
        try:
            self._table.journal(_encode(row).encode())[transaction.transactional_id] = row
        except CatalogError as error:
            failure = error
            scheduler.soon(lambda: saved.fail(failure))
        else:
            scheduler.soon(lambda: saved.resolve(None))
            applying.journaled()
        return saved

    def delete(self, transactional_id: str) -> Pending[None]:
        def write(connection: sqlite3.Connection) -> None:
            connection.execute("DELETE FROM transactions WHERE transactional_id = ?", (transactional_id,))

        return self._table.write(write)

    def close(self) -> None:
        self._scheduler = None
        if self._applying is not None:
            self._applying.close()
        self._table.apply().then(lambda _: self._table.close())


def _insert(connection: sqlite3.Connection, rows: Mapping[str, Row]) -> None:
    connection.executemany(
        f"INSERT OR REPLACE INTO transactions ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        rows.values(),
    )


def _decode(payload: bytes) -> dict[str, Row]:
    row = tuple(json.loads(payload))
    return {row[0]: row}


def _row(transaction: Transaction) -> Row:
    return (
        transaction.transactional_id,
        transaction.producer_id,
        transaction.producer_epoch,
        transaction.timeout_ms,
        transaction.last_update_ms,
        transaction.state,
        _encode(sorted(transaction.partitions)),
        transaction.start_ms,
        transaction.previous_producer_id,
        transaction.next_producer_id,
        transaction.last_producer_epoch,
        transaction.transaction_version,
    )


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
