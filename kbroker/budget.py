"""The process's budget of bytes held for clients: requests being received and responses not yet taken.

A reservation is granted at once when it fits, else when enough was given back. What fits overtakes what does
not: a few huge requests must not keep everybody else out. A single reservation larger than the whole budget
is granted once nothing else is held, so that it cannot wait forever.
"""

from __future__ import annotations

from collections.abc import Callable


class _Waiter:
    __slots__ = ("granted", "size")

    def __init__(self, size: int, granted: Callable[[], None]) -> None:
        self.size = size
        self.granted = granted


class Budget:
    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.used = 0
        self._waiters: dict[_Waiter, None] = {}  # in the order they came
        self._granting = False
        self._returned = False

    @property
    def available(self) -> int:
        return max(0, self.limit - self.used)

    def take(self, size: int) -> None:
        """Account for bytes that are there already."""
        self.used += size

    @property
    def contended(self) -> bool:
        """Whether somebody waits."""
        return bool(self._waiters)

    def give_back(self, size: int) -> None:
        self.used -= size
        self._returned = True
        if self._granting:  # by one of those granted below: not deeper and deeper
            return
        self._granting = True
        while self._returned:
            self._returned = False
            for waiter in list(self._waiters):
                if waiter in self._waiters and self._fits(waiter.size):
                    del self._waiters[waiter]
                    self.used += waiter.size
                    waiter.granted()
        self._granting = False

    def reserve(self, size: int, granted: Callable[[], None]) -> Callable[[], None] | None:
        """Call ``granted`` now or later. If later, returns a function that withdraws the wish."""
        if self._fits(size):
            self.used += size
            granted()
            return None
        waiter = _Waiter(size, granted)
        self._waiters[waiter] = None
        return lambda: self._waiters.pop(waiter, None)

    def _fits(self, size: int) -> bool:
        return self.used + size <= self.limit or self.used <= 0
