"""Results that may come later, without asyncio, and the ways to wait for them.

Everything below the connection layer answers either with a value or with a `Pending`. A Pending is settled
and observed on one thread (the loop's; in tests, the test's). It is settled exactly once. A waiter that no
longer needs the result (its connection went away) abandons it: the owner's clean-up runs, and later settling
is ignored. An exception of a waiter's callback is logged and ends there: whoever settles several results
settles them all.

Four ways to wait, in the order of preference:
- `mapped(part, build)` and `join(parts, build)`: the value that `build` makes of one result or of several, at
  once if they are there. `mapped(..., otherwise=...)` makes a value of a failure as well.
- `after(part, go_on, otherwise)`: the same where ``go_on`` may have to wait again.
- `run(steps)`: a generator that waits in between with `yield from wait(result)`.
- `Pending.then(callback)`: what the others are made of.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Generator
from typing import Any, Generic, TypeVar, overload

logger = logging.getLogger("kbroker.pending")

T = TypeVar("T")
R = TypeVar("R")

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

    @classmethod
    def failed(cls, error: BaseException) -> Pending[T]:
        pending: Pending[T] = cls()
        pending.fail(error)
        return pending

    @property
    def done(self) -> bool:
        return self._state != _WAITING

    @property
    def abandoned(self) -> bool:
        return self._state == _ABANDONED

    @property
    def succeeded(self) -> bool:
        return self._state == _RESOLVED

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
            try:
                callback(self)
            except Exception:  # of one waiter: the others, and those of whoever settles, are not to suffer
                logger.exception("what a result was waited for could not be done")


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


@overload
def mapped(
    part: Pending[T],
    build: Callable[[T], R],
    otherwise: Callable[[Exception], R] | None = None,
) -> R | Pending[R]: ...
@overload
def mapped(
    part: T | Pending[T],
    build: Callable[[T], R],
    otherwise: Callable[[Exception], R] | None = None,
) -> R | Pending[R]: ...
def mapped(
    part: Any,
    build: Callable[[Any], R],
    otherwise: Callable[[Exception], R] | None = None,
) -> R | Pending[R]:
    """``build`` applied to one part, now or later; ``otherwise`` applied to the error of one that failed."""
    if not isinstance(part, Pending):
        return build(part)
    if not part.done:
        return _Mapped(part, build, otherwise)
    if otherwise is None:
        return build(part.result())
    try:
        value = part.result()
    except Exception as error:
        return otherwise(error)
    return build(value)


class _Mapped(Pending[R]):
    """Lighter than a function with what it closes over: many requests may wait at a time."""

    __slots__ = ("_build", "_otherwise")

    def __init__(
        self, part: Pending[Any], build: Callable[[Any], R], otherwise: Callable[[Exception], R] | None
    ) -> None:
        super().__init__(part.abandon)
        self._build = build
        self._otherwise = otherwise
        part.then(self._arrived)

    def _arrived(self, part: Pending[Any]) -> None:
        try:
            try:
                value = self._build(part.result())
            except Exception as error:
                if self._otherwise is None or part.succeeded:
                    raise
                value = self._otherwise(error)
        except Exception as error:
            self.fail(error)
        else:
            self.resolve(value)


def after(
    part: Pending[T],
    go_on: Callable[[T], R | Pending[R]],
    otherwise: Callable[[Exception], R] | None = None,
) -> Pending[R]:
    """What ``go_on`` makes of the result, maybe later still; what ``otherwise`` makes of either's failure."""
    waits_for: Pending[Any] = part

    def abandoned() -> None:
        waits_for.abandon()

    result: Pending[R] = Pending(abandoned)

    def failed(error: Exception) -> None:
        if otherwise is None:
            result.fail(error)
            return
        try:
            value = otherwise(error)
        except Exception as worse:
            result.fail(worse)
        else:
            result.resolve(value)

    def arrived(settled: Pending[T]) -> None:
        nonlocal waits_for
        try:
            value = go_on(settled.result())
        except Exception as error:
            failed(error)
            return
        if isinstance(value, Pending):
            waits_for = value
            value.then(ended)
        else:
            result.resolve(value)

    def ended(settled: Pending[R]) -> None:
        try:
            value = settled.result()
        except Exception as error:
            failed(error)
        else:
            result.resolve(value)

    part.then(arrived)
    return result


def _abandon(pendings: list[Pending[Any]]) -> None:
    for pending in pendings:
        pending.abandon()


Steps = Generator[Pending[Any], None, T]
"""What takes several steps with waits in between, written in one piece."""


def wait(result: Pending[T]) -> Steps[T]:
    """The result, once it is there."""
    if not result.done:
        yield result
    return result.result()


def run(steps: Steps[T]) -> Pending[T]:
    """Begin the sequence; what comes back settles with its end."""
    result: Pending[T] = Pending()

    def go_on(_: object = None) -> None:
        try:
            waited_for = next(steps)
        except StopIteration as end:
            result.resolve(end.value)
        except Exception as error:
            result.fail(error)
        else:
            waited_for.then(go_on)

    go_on()
    return result
