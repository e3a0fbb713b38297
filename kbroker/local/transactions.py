"""Transactions from code in the process: begun (transaction.py), listed, described and aborted."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

from kbroker.local.calls import Access

if TYPE_CHECKING:
    from kbroker.local.transaction import Transaction
    from kbroker.operations.transactions.describing import DescribedTransaction
    from kbroker.pending import Pending
    from kbroker.requests.long_requests import Steps
    from kbroker.requests.resources import Resources

_ALL = 1 << 31


class Transactions(Access):
    def transaction(
        self, transactional_id: str | None = None, *, timeout_ms: int | None = None
    ) -> Transaction:
        """With a transactional id, whoever else uses that is fenced, and what they left open is aborted.

        ``timeout_ms``: after which it is aborted, a minute if not given.
        """
        from kbroker.local.transaction import Transaction

        if transactional_id == "":
            raise ValueError("a transactional id is not empty; without one the broker makes one up")
        return Transaction(self._calls, self._caller, transactional_id, timeout_ms)

    async def transactions(
        self, prefix: str = "", *, states: Collection[str] = (), open_for_ms: int = -1
    ) -> list[DescribedTransaction]:
        """The last of each transactional id, also of Kafka's clients; in these states, if any are named."""
        from kbroker.operations.transactions.describing import list_transactions

        def find(resources: Resources) -> Steps[list[DescribedTransaction]]:
            page = yield from list_transactions(
                resources, limit=_ALL, states=states, duration_ms=open_for_ms, prefix=prefix
            )
            return page.transactions

        return await self._ask(find)

    async def describe_transaction(self, id: str) -> DescribedTransaction:
        def find(resources: Resources) -> DescribedTransaction:
            return resources.broker.publishing.transactions.describe(resources, id)

        return await self._ask(find)

    async def abort_transaction(self, id: str) -> None:
        """Anybody's."""

        def abort(resources: Resources) -> Pending[None] | None:
            return resources.broker.publishing.transactions.abort(resources, id)

        await self._ask(abort)
