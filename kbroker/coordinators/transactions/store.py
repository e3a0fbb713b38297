"""How the transaction coordinator keeps its state: the interface. The catalog implements it.

Invariants: every write is atomic; writes take effect in the order they are called; a returned Pending
settles, on the caller's thread, when the write would survive the process.
"""

from __future__ import annotations

from typing import Protocol

from kbroker.coordinators.transactions.transaction import Transaction
from kbroker.pending import Pending


class TransactionStore(Protocol):
    def load(self) -> list[Transaction]:
        """Every transaction there is; once, at the start."""
        ...

    def save(self, transaction: Transaction) -> Pending[None]:
        """Keep this as the state of its transactional id."""
        ...

    def delete(self, transactional_id: str) -> Pending[None]: ...

    def close(self) -> None:
        """Nothing more is saved."""
        ...
