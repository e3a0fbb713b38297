"""A scheduler by hand, for stores that do things later."""

from __future__ import annotations

from collections.abc import Callable


class ManualTimers:
    """What is to be done soon or later is done when the test says so."""

    def __init__(self) -> None:
        self.due_soon: list[Callable[[], None]] = []
        self.due_later: list[Callable[[], None]] = []

    def soon(self, callback: Callable[[], None]) -> None:
        self.due_soon.append(callback)

    def after(self, delay_ms: int, callback: Callable[[], None]) -> Callable[[], None]:
        self.due_later.append(callback)
        return lambda: self.due_later.remove(callback)

    def end_turn(self) -> None:
        due, self.due_soon = self.due_soon, []
        for callback in due:
            callback()

    def fire(self) -> None:
        due, self.due_later = self.due_later, []
        for callback in due:
            callback()
