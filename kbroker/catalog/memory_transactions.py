"""The transaction coordinator's store of a catalog in memory."""

from __future__ import annotations

from collections.abc import Callable

from kbroker.coordinators.transactions.transaction import Transaction
from kbroker.pending import Pending


class MemoryTransactionStore:
    def __init__(self, written: Callable[[], Pending[None]] = lambda: Pending.resolved(None)) -> None:
        """`written`: the result of a write that was just done."""
        self._written = written
        self._transactions: dict[str, Transaction] = {}

    def load(self) -> list[Transaction]:
        return list(self._transactions.values())

    def save(self, transaction: Transaction) -> Pending[None]:
        self._transactions[transaction.transactional_id] = transaction
        return self._written()

    def delete(self, transactional_id: str) -> Pending[None]:
        self._transactions.pop(transactional_id, None)
        return self._written()

    @property
    def is_empty(self) -> bool:
        return not self._transactions

    def close(self) -> None:
        pass
