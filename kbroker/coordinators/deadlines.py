"""Calls something that works by deadlines back in time.

A coordinator has no clock: it says when it wants to be called next, and that it wants it sooner when that
changes. Here it meets the event loop's timers.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kbroker.scheduler import Scheduler

logger = logging.getLogger("kbroker.deadlines")


class Deadlines:
    def __init__(
        self,
        scheduler: Scheduler,
        clock: Callable[[], int],
        tick: Callable[[int], None],
        next_deadline: Callable[[], int | None],
    ) -> None:
        self._scheduler = scheduler
        self._clock = clock
        self._tick = tick
        self._next_deadline = next_deadline
        self._armed_for: int | None = None
        self._cancel: Callable[[], None] | None = None

    def arm(self) -> None:
        """Look again when to call: what is to be called next may have changed."""
        deadline_ms = self._next_deadline()
        if deadline_ms == self._armed_for:
            return
        self.stop()
        if deadline_ms is not None:
            self._armed_for = deadline_ms
            self._cancel = self._scheduler.after(max(0, deadline_ms - self._clock()), self._fire)

    def catch_up(self) -> None:
        """Do what is due now, whatever the timers were set to."""
        self.stop()
        self._fire()

    def stop(self) -> None:
        if self._cancel is not None:
            self._cancel()
        self._cancel = self._armed_for = None

    def _fire(self) -> None:
        self._cancel = self._armed_for = None
        try:
            self._tick(self._clock())
        except Exception:
            logger.exception("a deadline's work failed")
        self.arm()
