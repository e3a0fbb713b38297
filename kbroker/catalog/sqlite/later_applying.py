"""When a journaled table gets what was journaled: a second after the first of it, and again while it lags."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kbroker.catalog.sqlite.journaled_table import JournaledTable
from kbroker.scheduler import Scheduler

_APPLY_MS = 1000


class LaterApplying:
    def __init__(self, table: JournaledTable[Any], scheduler: Scheduler) -> None:
        self._table = table
        self._scheduler = scheduler
        self._cancel: Callable[[], None] | None = None
        self._closed = False

    def journaled(self) -> None:
        """Something was, or is still to be applied."""
        if self._cancel is None and not self._closed:
            self._cancel = self._scheduler.after(_APPLY_MS, self._apply)

    def apply_rest(self) -> None:
        """What could not be applied, or was journaled meanwhile."""
        if self._table.lags:
            self.journaled()

    def close(self) -> None:
        self._closed = True
        if self._cancel is not None:
            self._cancel()

    def _apply(self) -> None:
        self._cancel = None
        self._table.apply().then(lambda _: self.apply_rest())
