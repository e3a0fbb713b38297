"""Calls that come later, as code without a clock of its own asks for them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol


class Scheduler(Protocol):
    def after(self, delay_ms: int, callback: Callable[[], None]) -> Callable[[], None]:
        """Call back once, later, never before its time. Returns the function that cancels it."""

    def soon(self, callback: Callable[[], None]) -> None:
        """Call back when what runs now is over."""
