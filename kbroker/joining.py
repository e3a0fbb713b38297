"""Several results, some of which come later, joined into one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from kbroker.storage.pending import Pending

T = TypeVar("T")
R = TypeVar("R")


def join(parts: list[T | Pending[T]], build: Callable[[list[T]], R]) -> R | Pending[R]:
    """``build`` applied to all the parts: now if they are all there, else once they are."""
    waiting = [part for part in parts if isinstance(part, Pending)]
    if not waiting:
        return build(parts)  # type: ignore[arg-type]  # none of them is a Pending
    result: Pending[R] = Pending(lambda: _abandon(waiting))
    missing = len(waiting)

    def arrived(_: Pending[T]) -> None:
        nonlocal missing
        missing -= 1
        if missing:
            return
        try:
            value = build([part.result() if isinstance(part, Pending) else part for part in parts])
        except Exception as error:
            result.fail(error)
        else:
            result.resolve(value)

    for pending in waiting:
        pending.then(arrived)
    return result


def mapped(part: T | Pending[T], build: Callable[[T], R]) -> R | Pending[R]:
    """``build`` applied to one part, now or later."""
    if not isinstance(part, Pending):
        return build(part)
    if part.done:
        return build(part.result())
    return _Mapped(part, build)


class _Mapped(Pending[R]):
    """Lighter than a function with what it closes over: many requests may wait at a time."""

    __slots__ = ("_build",)

    def __init__(self, part: Pending[Any], build: Callable[[Any], R]) -> None:
        super().__init__(part.abandon)
        self._build = build
        part.then(self._arrived)

    def _arrived(self, part: Pending[Any]) -> None:
        try:
            value = self._build(part.result())
        except Exception as error:
            self.fail(error)
        else:
            self.resolve(value)


def _abandon(pendings: list[Pending[Any]]) -> None:
    for pending in pendings:
        pending.abandon()
