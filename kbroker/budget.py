"""The process's budget of bytes held for clients: requests being received and responses not yet taken.

A reservation is granted at once when it fits, else when enough was given back, first come first served. A
single reservation larger than the whole budget is granted once nothing else is held, so that it cannot wait
forever.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable


class _Waiter:
    __slots__ = ("granted", "size", "withdrawn")

    def __init__(self, size: int, granted: Callable[[], None]) -> None:
        self.size = size
        self.granted = granted
        self.withdrawn = False


class Budget:
    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.used = 0
        self._waiters: deque[_Waiter] = deque()

    @property
    def available(self) -> int:
        return max(0, self.limit - self.used)

    def take(self, size: int) -> None:
        """Account for bytes that are there already."""
        self.used += size

    def give_back(self, size: int) -> None:
        self.used -= size
        while self._waiters and (self._waiters[0].withdrawn or self._fits(self._waiters[0].size)):
            waiter = self._waiters.popleft()
            if not waiter.withdrawn:
                self.used += waiter.size
                waiter.granted()

    def reserve(self, size: int, granted: Callable[[], None]) -> Callable[[], None] | None:
        """Call ``granted`` now or later. If later, returns a function that withdraws the wish."""
        if not self._waiters and self._fits(size):
            self.used += size
            granted()
            return None
        waiter = _Waiter(size, granted)
        self._waiters.append(waiter)

        def withdraw() -> None:
            waiter.withdrawn = True

        return withdraw

    def _fits(self, size: int) -> bool:
        return self.used + size <= self.limit or self.used <= 0
