"""Transactions as rows, one per transactional id: the transaction coordinator's store.

Where it may, a change is noted in a journal, which is as good as stored: it outlives the process. A second
later, or with the next change that is not noted, the last one of every transactional id is folded into the
table. `facts` remembers up to which entry of the journal the table has them, so what failed, or was cut short
by a crash, is done again, and none is done twice.
"""

from __future__ import annotations

import json
import logging
import sqlite3
from collections.abc import Callable, Iterable
from typing import Any

from kbroker.catalog.errors import CatalogError, CatalogFull
from kbroker.catalog.sqlite import facts
from kbroker.catalog.sqlite.database import Database
from kbroker.catalog.sqlite.journal import Journal
from kbroker.catalog.sqlite.stored import TRANSACTIONS_FOLDED
from kbroker.coordinators.transactions.transaction import TopicPartition, Transaction, TransactionState
from kbroker.pending import Pending
from kbroker.scheduler import Scheduler

logger = logging.getLogger("kbroker.catalog")

_COLUMNS = (
    "transactional_id, producer_id, producer_epoch, timeout_ms, last_update_ms, state, partitions, start_ms, "
    "previous_producer_id, next_producer_id, last_producer_epoch, transaction_version"
)
_FOLD_MS = 1000
_encode = json.JSONEncoder(separators=(",", ":")).encode

Row = tuple[Any, ...]


class SqliteTransactionStore:
    def __init__(
        self,
        database: Database,
        journal: Journal | None = None,
        scheduler: Scheduler | None = None,
        *,
        stored: bool = True,
    ) -> None:
        """`journal`: where changes may stand that the database lacks. `scheduler`: for putting more there;
        without it every change is a transaction of the database. `stored`: there may be something to load.
        """
        self._database = database
        self._journal = journal
        self._scheduler = scheduler
        self._stored = stored
        self._noted: dict[str, tuple[int, Row]] = {}  # with the entry it stands in: not in the table yet
        self._cancel_fold: Callable[[], None] | None = None

    def load(self) -> list[Transaction]:
        if not self._stored:
            return []
        if self._journal is not None:
            folded = self._database.read(lambda connection: facts.number(connection, TRANSACTIONS_FOLDED))
            for sequence, payload in self._journal.read(folded):
                row = tuple(json.loads(payload))
                self._noted[row[0]] = (sequence, row)
            try:
                self._fold().result()
                self._journal.forget(self._journal.sequence)
            except CatalogFull as error:
                logger.warning("transactions stay in their journal until there is room: %s", error)
                self._fold_rest()
        rows = self._database.read(
            lambda connection: {
                row[0]: row for row in connection.execute(f"SELECT {_COLUMNS} FROM transactions")
            }
        )
        rows |= {transactional_id: row for transactional_id, (_, row) in self._noted.items()}
        return [_transaction(*row) for row in rows.values()]

    def save(self, transaction: Transaction) -> Pending[None]:
        row = _row(transaction)
        if self._journal is None or self._scheduler is None or self._journal.broken:
            return self._write(lambda connection: _insert(connection, (row,)))
        saved: Pending[None] = Pending()
        try:
            sequence = self._journal.append(_encode(row).encode())
        except CatalogError as error:
            failure = error
            self._scheduler.soon(lambda: saved.fail(failure))
        else:
            self._noted[transaction.transactional_id] = (sequence, row)
            self._scheduler.soon(lambda: saved.resolve(None))
            self._fold_later(self._scheduler)
        return saved

    def delete(self, transactional_id: str) -> Pending[None]:
        def write(connection: sqlite3.Connection) -> None:
            connection.execute("DELETE FROM transactions WHERE transactional_id = ?", (transactional_id,))

        return self._write(write)

    def close(self) -> None:
        self._scheduler = None
        if self._cancel_fold is not None:
            self._cancel_fold()
        journal = self._journal
        if journal is not None:
            self._fold().then(lambda _: journal.close())

    # from the journal to the table

    def _fold_later(self, scheduler: Scheduler) -> None:
        if self._cancel_fold is None:
            self._cancel_fold = scheduler.after(_FOLD_MS, self._fold_now)

    def _fold_now(self) -> None:
        self._cancel_fold = None
        self._fold().then(lambda _: self._fold_rest())

    def _fold_rest(self) -> None:
        """What could not be folded, or was noted meanwhile."""
        if self._noted and self._scheduler is not None:
            self._fold_later(self._scheduler)

    def _fold(self) -> Pending[None]:
        return self._write(lambda connection: None) if self._noted else Pending.resolved(None)

    def _write(self, function: Callable[[sqlite3.Connection], None]) -> Pending[None]:
        """A write that comes after everything noted so far, which it takes along."""
        journal = self._journal
        if journal is None or not self._noted:
            return self._database.write(function)
        noted, last = self._noted.copy(), journal.sequence
        journal.turn()

        def write(connection: sqlite3.Connection) -> None:
            folded = facts.number(connection, TRANSACTIONS_FOLDED)
            _insert(connection, (row for sequence, row in noted.values() if sequence > folded))
            facts.put(connection, TRANSACTIONS_FOLDED, str(last))
            function(connection)

        written = self._database.write(write)
        written.then(lambda done: self._folded_up_to(last, journal, done))
        return written

    def _folded_up_to(self, last: int, journal: Journal, done: Pending[None]) -> None:
        try:
            done.result()
        except Exception:
            return  # the writer hears of it; here it stays noted, for the next write
        self._noted = {key: noted for key, noted in self._noted.items() if noted[0] > last}
        journal.forget(last)


def _insert(connection: sqlite3.Connection, rows: Iterable[Row]) -> None:
    connection.executemany(
        f"INSERT OR REPLACE INTO transactions ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", rows
    )


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
