"""Transactions as a compaction meets them, batch by batch from the first offset of a log on.

The data of an aborted transaction goes at once. A marker goes when nothing of its transaction was met any
more, and then only after the delete horizon that it gets: a reader may still be in front of it.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable

from kbroker.protocol.records import BatchHeader, ControlType, parse_control
from kbroker.storage.partition.transaction_index import AbortedEntry


class CleanedTransactions:
    def __init__(self, aborted: Iterable[AbortedEntry]) -> None:
        """`aborted`: every aborted transaction with data in what is compacted."""
        self._ahead = [(entry.first_offset, entry) for entry in aborted]
        heapq.heapify(self._ahead)
        self._aborted: dict[int, AbortedEntry] = {}  # producer id → the aborted transaction it is in
        self._met: set[int] = set()  # … of which data was met
        self._committed: set[int] = set()
        self._still_aborted: list[AbortedEntry] = []  # since `take_still_aborted`, with marker and data there

    def _advance(self, offset: int) -> None:
        ahead = self._ahead
        while ahead and ahead[0][0] <= offset:
            entry = heapq.heappop(ahead)[1]
            self._aborted.setdefault(entry.producer_id, entry)

    def is_aborted(self, header: BatchHeader) -> bool:
        """Whether a data batch belongs to an aborted transaction."""
        self._advance(header.last_offset)
        if not header.is_transactional:
            return False
        if header.producer_id in self._aborted:
            self._met.add(header.producer_id)
            return True
        self._committed.add(header.producer_id)
        return False

    def is_needless(self, header: BatchHeader, batch: memoryview) -> bool:
        """Whether a control batch has nothing left to decide."""
        self._advance(header.last_offset)
        if not header.record_count:
            return True
        marker = parse_control(batch)
        if marker is None:
            return False
        producer_id = header.producer_id
        if marker.type == ControlType.COMMIT:
            needless = producer_id not in self._committed
            self._committed.discard(producer_id)
            return needless
        entry = self._aborted.pop(producer_id, None)
        if entry is None or producer_id not in self._met:
            return True
        self._met.discard(producer_id)
        self._still_aborted.append(entry)
        return False

    def take_still_aborted(self) -> list[AbortedEntry]:
        """The aborted transactions whose markers were met since the last call and are needed."""
        taken, self._still_aborted = self._still_aborted, []
        return taken
