"""Producer ids: each is given out once in the life of a cluster.

They are reserved in blocks, so that a start or a crash skips some and repeats none.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kbroker.catalog import facts
from kbroker.pending import Pending

if TYPE_CHECKING:
    from kbroker.catalog.database import Database

_BLOCK = 1000


class ProducerIds:
    def __init__(self, database: Database, first_free: int) -> None:
        self._database = database
        self._next = self._reserved = first_free
        self._waiting: list[Pending[int]] = []

    def allocate(self) -> int | Pending[int]:
        if self._next < self._reserved:
            self._next += 1
            return self._next - 1
        pending: Pending[int] = Pending()
        self._waiting.append(pending)
        if len(self._waiting) == 1:
            self._reserve()
        return pending

    def _reserve(self) -> None:
        end = self._reserved + max(_BLOCK, len(self._waiting))
        facts.save(self._database, "producer.id.next", str(end)).then(
            lambda write: self._reserved_to(end, write)
        )

    def _reserved_to(self, end: int, write: Pending[None]) -> None:
        waiting, self._waiting = self._waiting, []
        try:
            write.result()
        except Exception as error:
            for pending in waiting:
                pending.fail(error)
            return
        self._reserved = end
        for pending in waiting:
            allocated = self.allocate()
            if isinstance(allocated, Pending):
                allocated.then(pending.follow)
            else:
                pending.resolve(allocated)
