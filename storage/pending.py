"""A result that may come later, without asyncio.

Everything below the connection layer answers either with a value or with a ``Pending``. A Pending is resolved
and observed on one thread (the loop's; in tests, the test's). It is settled exactly once. Whoever
no longer needs the result (the connection went away) abandons it: the owner's clean-up runs, later
settling is ignored.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")

_WAITING, _RESOLVED, _FAILED, _ABANDONED = range(4)


class Pending(Generic[T]):
    __slots__ = ("_abandon", "_callbacks", "_error", "_state", "_value")

    def __init__(self, on_abandon: Callable[[], None] | None = None) -> None:
        self._state = _WAITING
        self._callbacks: list[Callable[[Pending[T]], None]] = []
        self._abandon = on_abandon

    @classmethod
    def resolved(cls, value: T) -> Pending[T]:
        pending: Pending[T] = cls()
        pending.resolve(value)
        return pending

    @property
    def done(self) -> bool:
        return self._state != _WAITING

    @property
    def abandoned(self) -> bool:
        return self._state == _ABANDONED

    def result(self) -> T:
        """The value, or the failure raised. Only once done and not abandoned."""
        if self._state == _FAILED:
            raise self._error
        if self._state != _RESOLVED:
            raise RuntimeError("the result is not there")
        return self._value

    def resolve(self, value: T) -> None:
        if self._state == _WAITING:
            self._value = value
            self._settle(_RESOLVED)
        elif self._state != _ABANDONED:
            raise RuntimeError("settled twice")

    def fail(self, error: BaseException) -> None:
        if self._state == _WAITING:
            self._error = error
            self._settle(_FAILED)
        elif self._state != _ABANDONED:
            raise RuntimeError("settled twice")

    def follow(self, other: Pending[T]) -> None:
        """Settle as the other one, which is settled, did."""
        try:
            value = other.result()
        except Exception as error:
            self.fail(error)
        else:
            self.resolve(value)

    def abandon(self) -> None:
        """Nobody waits any more. A no-op on a settled Pending."""
        if self._state != _WAITING:
            return
        self._state = _ABANDONED
        self._callbacks.clear()
        abandon, self._abandon = self._abandon, None
        if abandon is not None:
            abandon()

    def then(self, callback: Callable[[Pending[T]], None]) -> None:
        """Call back once settled: at once if it already is, never if abandoned."""
        if self._state == _WAITING:
            self._callbacks.append(callback)
        elif self._state != _ABANDONED:
            callback(self)

    def _settle(self, state: int) -> None:
        self._state = state
        self._abandon = None  # the owner mostly knows this Pending: together they would be garbage to collect
        callbacks, self._callbacks = self._callbacks, []
        for callback in callbacks:
            callback(self)
