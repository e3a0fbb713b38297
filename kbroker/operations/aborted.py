"""Which batches of a committed read belong to aborted transactions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from kbroker.protocol.records import BatchHeader, ControlType, parse_control

if TYPE_CHECKING:
    from kbroker.storage.interface import AbortedTransaction


class AbortedBatches:
    """A transaction hides its producer's batches from its first offset up to its marker.

    Asked of every batch of the read, in their order: markers among them end transactions.
    """

    __slots__ = ("_producers", "_to_come")

    def __init__(self, transactions: Sequence[AbortedTransaction]) -> None:
        self._to_come = sorted(transactions, key=lambda each: each.first_offset, reverse=True)
        self._producers: set[int] = set()

    def holds(self, header: BatchHeader, batch: memoryview) -> bool:
        """Whether the batch was aborted. A marker was not, whatever it ends."""
        to_come, producers = self._to_come, self._producers
        while to_come and to_come[-1].first_offset <= header.last_offset:
            producers.add(to_come.pop().producer_id)
        if not header.is_transactional or header.producer_id not in producers:
            return False
        if not header.is_control:
            return True
        marker = parse_control(batch)
        if marker is not None and marker.type is ControlType.ABORT:
            producers.discard(header.producer_id)
        return False
