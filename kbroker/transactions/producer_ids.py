"""Producer ids: each is given out once in the life of a cluster.

The catalog reserves them in blocks, so that a start or a crash skips some and repeats none, and several
brokers never give out the same.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kbroker.pending import Pending

if TYPE_CHECKING:
    from kbroker.catalog.interface import Catalog

_BLOCK = 1000


class ProducerIds:
    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self._free = iter(range(0))
        self._waiting: list[Pending[int]] = []

    def allocate(self) -> int | Pending[int]:
        producer_id = next(self._free, None)
        if producer_id is not None:
            return producer_id
        pending: Pending[int] = Pending()
        self._waiting.append(pending)
        if len(self._waiting) == 1:
            self._catalog.reserve_producer_ids(_BLOCK).then(self._reserved)
        return pending

    def _reserved(self, block: Pending[range]) -> None:
        waiting, self._waiting = self._waiting, []
        try:
            self._free = iter(block.result())
        except Exception as error:
            for pending in waiting:
                pending.fail(error)
            return
        for pending in waiting:
            allocated = self.allocate()
            if isinstance(allocated, Pending):
                allocated.then(pending.follow)
            else:
                pending.resolve(allocated)
