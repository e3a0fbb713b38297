"""What became of the records that a share group was given, counted since the start, for who looks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from kbroker.coordinators.shares.window import ACKNOWLEDGED, ARCHIVED

if TYPE_CHECKING:
    from kbroker.coordinators.shares.partition import Acquired, Change


class ShareCounts:
    """Of one group."""

    __slots__ = ("acknowledged", "archived", "deliveries", "released")

    def __init__(self) -> None:
        self.deliveries: Counter[int] = Counter()
        """Records given, by the number of the delivery: 1 is the first time."""
        self.acknowledged = 0
        self.archived = 0
        """Rejected, delivered too often, of aborted transactions, or gone from the log."""
        self.released = 0
        """Given back: by members, or because their locks or sessions ended."""

    def delivered(self, acquired: Sequence[Acquired]) -> None:
        for first, last, count in acquired:
            self.deliveries[count] += last - first + 1

    def settled(self, change: Change) -> None:
        for move in change.moves:
            records = move.last - move.first + 1
            if move.after.state == ACKNOWLEDGED:
                self.acknowledged += records
            elif move.after.state == ARCHIVED:
                self.archived += records
            else:
                self.released += records
