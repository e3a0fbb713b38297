"""The process's budget of bytes held for clients: requests being received, worked on, and answers not yet
taken.

A reservation is granted at once when it fits, else when enough was given back. What fits overtakes what does
not: a few huge requests must not keep everybody else out. A single reservation larger than the whole budget
is granted once nothing else is held, so that it cannot wait forever.

Work (decoding a long request, making a large answer, looking into a batch) reserves all that it may need
before it begins, and reserves nothing more until it ends. What is set aside for those who wait does not keep
the only work from beginning: else all would wait for room that only they themselves take.

Frames that are being received may hold three quarters: whoever announces much and sends little cannot keep
others from reading. The oldest of them is exempt, so that one always gets to its end; if its peer does not
send, it is closed (stalled_peers.py), and the next is the oldest.

Bodies, what comes in parts by HTTP, go on only while less than half is used, so that they cannot keep frames
out. The oldest of them is exempt, for the same reason.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from kbroker.pending import Pending

logger = logging.getLogger("kbroker.budget")


_WORK, _DOCUMENT = object(), object()


class _Waiter:
    __slots__ = ("granted", "size", "whose")

    def __init__(self, size: int, granted: Callable[[], None], whose: object | None) -> None:
        self.size = size
        self.granted = granted
        self.whose = whose
        """The frame or body that is coming, _WORK or _DOCUMENT; None: something that is soon over."""


class Budget:
    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.tight_above = limit * 3 // 4
        self.used = 0
        self._aside = 0  # of `used`
        self._at_work = 0  # reservations of work that has not ended
        self._waiters: dict[_Waiter, None] = {}  # in the order they came
        self._frames: dict[object, None] = {}  # being received, the oldest first
        self._bodies: dict[object, None] = {}  # the same of HTTP
        self._granting = False
        self._returned = False

    @property
    def available(self) -> int:
        """For answers; what is set aside waits for its turn and must not keep them from being made."""
        return max(0, self.limit - self.used + self._aside)

    @property
    def roomy(self) -> bool:
        """Less than half is used: nobody need be careful."""
        return self.used * 2 < self.limit

    @property
    def tight(self) -> bool:
        """More than three quarters are used: take in little at a time."""
        return self.used > self.tight_above

    @property
    def waiting(self) -> int:
        """How many reservations wait."""
        return len(self._waiters)

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
                    if waiter in self._waiters and self._fits(waiter.size, waiter.whose):
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
        return self._reserve(size, granted, frame)

    def reserve_for_body(
        self, size: int, granted: Callable[[], None], body: object
    ) -> Callable[[], None] | None:
        """The same for the next part of a body; all of its reservations end with `body_ended`."""
        self._bodies[body] = None
        return self._reserve(size, granted, body)

    def reserve_for_document(self, size: int, granted: Callable[[], None]) -> Callable[[], None] | None:
        """The same for what is made of a body: all of them have half, so that work on them can begin."""
        return self._reserve(size, granted, _DOCUMENT)

    def _reserve(
        self, size: int, granted: Callable[[], None], whose: object | None
    ) -> Callable[[], None] | None:
        if self._fits(size, whose):
            self.used += size
            granted()
            return None
        waiter = _Waiter(size, granted, whose)
        self._waiters[waiter] = None
        return lambda: self._waiters.pop(waiter, None)

    def begin_work(self, size: int) -> Pending[None]:
        """Reserve what work may need; resolved when it may begin. It ends with `end_work`."""
        begun: Pending[None] = Pending()

        def granted() -> None:
            self._at_work += 1
            begun.resolve(None)

        withdraw = self._reserve(size, granted, _WORK)
        if withdraw is None:
            return begun
        later: Pending[None] = Pending(withdraw)
        begun.then(later.follow)
        return later

    def end_work(self, size: int) -> None:
        self._at_work -= 1
        self.give_back(size)

    def set_aside(self, size: int) -> None:
        """Account for bytes that are there already and wait for something to be done with them."""
        self._aside += size
        self.used += size

    def take_up(self, size: int) -> None:
        """They wait no more."""
        self._aside -= size
        self.give_back(size)

    def frame_ended(self, frame: object) -> None:
        """It is received, or given up."""
        if frame in self._frames:
            del self._frames[frame]
            self._grant()

    def body_ended(self, body: object) -> None:
        """It is received, or given up."""
        if body in self._bodies:
            del self._bodies[body]
            self._grant()

    def _fits(self, size: int, whose: object | None) -> bool:
        if self.used <= 0:
            return True
        if whose is None:
            return self.used - self._aside + size <= self.limit
        if whose is _WORK:
            used = self.used if self._at_work else self.used - self._aside
            return used + size <= self.limit or used <= 0
        if whose is _DOCUMENT:
            return (self.used - self._aside + size) * 2 <= self.limit
        if whose in self._bodies:
            return (self.used + size) * 2 <= self.limit or whose is next(iter(self._bodies))
        return self.used + size <= self.tight_above or whose is next(iter(self._frames))
