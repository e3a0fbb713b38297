"""The process's budget of bytes held for clients: requests being received, worked on, and answers not yet
taken.

A reservation is granted at once when it fits, else when enough was given back. What fits overtakes what does
not: a few huge requests must not keep everybody else out. A single reservation larger than the whole budget
is granted once nothing else is held, so that it cannot wait forever.

Frames that are being received may hold three quarters: whoever announces much and sends little cannot keep
others from reading. The oldest of them is exempt, so that one always gets to its end; if its peer does not
send, it is closed (stalled_peers.py), and the next is the oldest.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from kbroker.storage.pending import Pending

logger = logging.getLogger("kbroker.budget")


class _Waiter:
    __slots__ = ("frame", "granted", "size")

    def __init__(self, size: int, granted: Callable[[], None], frame: object | None) -> None:
        self.size = size
        self.granted = granted
        self.frame = frame


class Budget:
    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.tight_above = limit * 3 // 4
        self.used = 0
        self._waiters: dict[_Waiter, None] = {}  # in the order they came
        self._frames: dict[object, None] = {}  # being received, the oldest first
        self._granting = False
        self._returned = False

    @property
    def available(self) -> int:
        return max(0, self.limit - self.used)

    @property
    def roomy(self) -> bool:
        """Less than half is used: nobody need be careful."""
        return self.used * 2 < self.limit

    @property
    def tight(self) -> bool:
        """More than three quarters are used: take in little at a time."""
        return self.used > self.tight_above

    def take(self, size: int) -> None:
        """Account for bytes that are there already."""
        self.used += size

    @property
    def contended(self) -> bool:
        """Whether somebody waits."""
        return bool(self._waiters)

    def give_back(self, size: int) -> None:
        self.used -= size
        self._grant()

    def _grant(self) -> None:
        self._returned = True
        if self._granting or not self._waiters:  # by one of those granted below: not deeper and deeper
            return
        self._granting = True
        try:
            while self._returned:
                self._returned = False
                for waiter in list(self._waiters):
                    if waiter in self._waiters and self._fits(waiter.size, waiter.frame):
                        del self._waiters[waiter]
                        self.used += waiter.size
                        try:
                            waiter.granted()
                        except Exception:
                            logger.exception("a reservation of %d bytes could not be used", waiter.size)
        finally:
            self._granting = False

    def reserve(
        self, size: int, granted: Callable[[], None], frame: object | None = None
    ) -> Callable[[], None] | None:
        """Call ``granted`` now or later. If later, returns a function that withdraws the wish.

        `frame`: whose reception it is for, if it is; all of its reservations end with `frame_ended`.
        """
        if frame is not None:
            self._frames[frame] = None
        if self._fits(size, frame):
            self.used += size
            granted()
            return None
        waiter = _Waiter(size, granted, frame)
        self._waiters[waiter] = None
        return lambda: self._waiters.pop(waiter, None)

    def reserved(self, size: int) -> Pending[None]:
        """The same; resolved when it is granted."""
        pending: Pending[None] = Pending()
        withdraw = self.reserve(size, lambda: pending.resolve(None))
        if withdraw is None:
            return pending
        later: Pending[None] = Pending(withdraw)
        pending.then(later.follow)
        return later

    def frame_ended(self, frame: object) -> None:
        """It is received, or given up."""
        if frame in self._frames:
            del self._frames[frame]
            self._grant()

    def _fits(self, size: int, frame: object | None) -> bool:
        if self.used <= 0:
            return True
        if frame is None:
            return self.used + size <= self.limit
        return self.used + size <= self.tight_above or frame is next(iter(self._frames))
