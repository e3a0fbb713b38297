"""Leases: who holds records, until when; and which of them run out next.

All records of one acquire share a lease. A back-off is a lease that nobody holds. Records know their lease; a
lease knows how many records have it (`held`) and where they are at most (`ranges`). A lease that no record
has any more is forgotten: at once if it is the next to run out, else when half of them are such.
"""

from __future__ import annotations

import heapq

_FEW = 64


class Lease:
    __slots__ = ("deadline_ms", "held", "is_over", "member_id", "ranges")

    def __init__(self, member_id: str | None, deadline_ms: int) -> None:
        self.member_id = member_id
        self.deadline_ms = deadline_ms
        self.held = 0
        self.ranges: list[tuple[int, int]] = []
        self.is_over = False


class Leases:
    def __init__(self) -> None:
        self._heap: list[tuple[int, int, Lease]] = []
        self._made = 0
        self._crowded = _FEW

    def add(self, lease: Lease) -> None:
        self._made += 1
        if len(self._heap) >= self._crowded:
            self._heap = [entry for entry in self._heap if entry[2].held]
            heapq.heapify(self._heap)
            self._crowded = max(_FEW, 2 * len(self._heap))
        heapq.heappush(self._heap, (lease.deadline_ms, self._made, lease))

    @property
    def held(self) -> int:
        """Records that members hold."""
        return sum(lease.held for _, _, lease in self._heap if lease.member_id)

    def of(self, member_id: str) -> list[Lease]:
        """In the order in which they were made."""
        entries = sorted(entry for entry in self._heap if entry[2].member_id == member_id and entry[2].held)
        return [entry[2] for entry in entries]

    def run_out(self, now_ms: int) -> list[Lease]:
        """Those that have, once."""
        found = []
        while self._heap and self._heap[0][0] <= now_ms:
            lease = heapq.heappop(self._heap)[2]
            lease.is_over = True
            if lease.held:
                found.append(lease)
        return found

    def next_deadline(self) -> int | None:
        heap = self._heap
        while heap and not heap[0][2].held:
            heapq.heappop(heap)
        return heap[0][0] if heap else None
