"""The transactions that are open, by id, and what became of those that were not long ago.

Invariants: there are at most kbroker.http.max.transactions of them, whatever door they came by. One is used
only by the principal that began it; for all others there is none of that id. None outlives the process: what
is open when it dies can only be aborted, which its timeout does, too. Whether a commit was done in time is
still told then (`describing.py`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from kbroker.operations.auditing import audited
from kbroker.operations.transactions import describing
from kbroker.operations.transactions.describing import TransactionId, check_rights, parsed_id
from kbroker.operations.transactions.errors import TooManyTransactions
from kbroker.operations.transactions.open_transaction import OpenTransaction
from kbroker.operations.transactions.own_ids import RESERVED, OwnIds
from kbroker.operations.transactions.producer import take_over
from kbroker.pending import Pending
from kbroker.protocol.errors import ApiError, ErrorCode

if TYPE_CHECKING:
    from kbroker.broker import Broker
    from kbroker.operations.transactions.describing import DescribedTransaction
    from kbroker.requests.long_requests import Steps
    from kbroker.requests.resources import Resources

TIMEOUT_MS: Final = 60_000
"""Of a transaction that is begun without one, if transaction.max.timeout.ms allows it."""
_MOST_OVER: Final = 5_000


class OpenTransactions:
    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._open: dict[str, OpenTransaction] = {}
        self._by_transactional_id: dict[str, list[OpenTransaction]] = {}
        self._over: dict[str, OpenTransaction] = {}  # the oldest first
        self._beginning = 0
        self._own_ids = OwnIds()

    def __len__(self) -> int:
        return len(self._open)

    def begin(
        self, resources: Resources, transactional_id: str | None = None, *, timeout_ms: int | None = None
    ) -> OpenTransaction | Pending[OpenTransaction]:
        """A new one. With a transactional id, whoever else uses that is fenced, and what they left open is
        aborted; without, nobody is.
        """
        most = self._broker.settings["kbroker.http.max.transactions"]
        if transactional_id is None:
            resources.producer_ids()
        elif transactional_id.startswith(RESERVED):
            raise ApiError(
                ErrorCode.INVALID_REQUEST,
                f"Transactional ids that begin with {RESERVED} are the broker's own.",
            )
        else:
            check_rights(resources, transactional_id)
        if len(self._open) + self._beginning >= most:
            raise TooManyTransactions(most)
        if timeout_ms is None:
            timeout_ms = min(TIMEOUT_MS, self._broker.settings["transaction.max.timeout.ms"])
        return self._broker.long_requests.run(self._begin(resources, transactional_id, timeout_ms))

    def _begin(
        self, resources: Resources, transactional_id: str | None, timeout_ms: int
    ) -> Steps[OpenTransaction]:
        own_id = self._own_ids.take(resources.principal) if transactional_id is None else None
        name = transactional_id or own_id or ""
        self._beginning += 1
        try:
            producer = yield from take_over(resources, name, timeout_ms)
        except BaseException:
            if own_id is not None:
                self._own_ids.give_back(own_id, resources.principal)
            raise
        finally:
            self._beginning -= 1
        transaction = OpenTransaction(resources, TransactionId(name, producer), timeout_ms, self._is_over)
        self._open[str(transaction.id)] = transaction
        others = self._by_transactional_id.setdefault(name, [])
        others.append(transaction)
        for each in list(others):  # the one before, or this one, if a newer was faster
            each.look()
        return transaction

    def get(self, resources: Resources, id_: str) -> OpenTransaction:
        """To work on it. Raises where that is not possible, or not any more."""
        transaction = self._find(resources, id_)
        if transaction is None:
            describing.refuse_work(resources, parsed_id(id_))
        return transaction

    def commit(self, resources: Resources, id_: str) -> Pending[None] | None:
        transaction = self._find(resources, id_)
        if transaction is not None:
            return transaction.commit(resources)
        describing.check_committed(resources, parsed_id(id_))
        return None

    def abort(self, resources: Resources, id_: str) -> Pending[None] | None:
        """For administrators: also what somebody else has begun."""
        transaction = self._find(resources, id_)
        if transaction is not None:
            return transaction.abort(resources)
        other = parsed_id(id_)

        def change() -> Pending[None] | None:
            return self._broker.long_requests.run(describing.abort(resources, other))

        return audited(resources, "TRANSACTIONAL_ID", other.transactional_id, change)

    def describe(self, resources: Resources, id_: str) -> DescribedTransaction:
        transaction = self._find(resources, id_)
        if transaction is not None:
            return transaction.described(resources)
        return describing.describe(resources, parsed_id(id_))

    def close(self) -> None:
        """The broker stops."""
        for transaction in self._open.values():
            transaction.forget()

    def _find(self, resources: Resources, id_: str) -> OpenTransaction | None:
        transaction = self._open.get(id_) or self._over.get(id_)
        return (
            transaction if transaction is not None and transaction.principal == resources.principal else None
        )

    def _is_over(self, transaction: OpenTransaction) -> None:
        id_, name = str(transaction.id), transaction.id.transactional_id
        self._over[id_] = self._open.pop(id_)
        others = self._by_transactional_id[name]
        others.remove(transaction)
        if not others:
            del self._by_transactional_id[name]
        if name.startswith(RESERVED):
            self._own_ids.give_back(name, transaction.principal)
        if len(self._over) > _MOST_OVER:
            del self._over[next(iter(self._over))]
