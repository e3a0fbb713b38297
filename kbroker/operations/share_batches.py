"""What was read of a log as share partitions see it: the borders of its batches, aborted ones among them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from kbroker.coordinators.shares.partition import Acquired, LogBatch
from kbroker.operations.aborted import AbortedBatches
from kbroker.protocol.records import BatchHeader, iter_batches

if TYPE_CHECKING:
    from kbroker.storage.interface import AbortedTransaction, Slice


class ReadBatches:
    """The batches of a slice, in order."""

    __slots__ = ("_headers", "_views", "batches")

    def __init__(self, got: Slice) -> None:
        self._views: list[memoryview] = []
        self._headers: list[BatchHeader] = []
        self.batches: list[LogBatch] = []
        for buffer in got.buffers:
            view = memoryview(buffer)  # type: ignore[arg-type]  # no FileRange: they were not asked for
            for position, header in iter_batches(view):
                self._views.append(view[position : position + header.size_bytes])
                self._headers.append(header)
                self.batches.append(
                    LogBatch(header.base_offset, header.base_offset + header.last_offset_delta)
                )

    def holding(self, acquired: Sequence[Acquired]) -> list[memoryview]:
        """From the batch of the first acquired record to that of the last."""
        first, last = acquired[0].first_offset, acquired[-1].last_offset
        return [
            view
            for view, batch in zip(self._views, self.batches, strict=True)
            if batch.last_offset >= first and batch.first_offset <= last
        ]

    def aborted(self, transactions: Sequence[AbortedTransaction]) -> list[tuple[int, int]]:
        """The offsets of the batches that belong to these transactions; their markers do not."""
        if not transactions:
            return []
        hidden = AbortedBatches(transactions)
        return [
            batch
            for header, batch, view in zip(self._headers, self.batches, self._views, strict=True)
            if hidden.holds(header, view)
        ]
