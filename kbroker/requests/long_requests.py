"""Requests that take long, done in turns with all others.

Work that may take long is a generator ("steps"): it yields None wherever others may have a turn, and a
Pending to wait for that. What ends within a short while is done at once; the rest goes on a slice at a time,
one slice per turn of the loop, request after request in a circle, so that nobody waits for much more than a
slice.

Invariants: an exception in the steps fails their result and nothing else. When nobody waits for the result
any more, the steps are closed where they stand.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from time import perf_counter
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

from kbroker.pending import Pending, wait

if TYPE_CHECKING:
    from kbroker.network.budget import Budget
    from kbroker.scheduler import Scheduler

T = TypeVar("T")
R = TypeVar("R")
K = TypeVar("K")
Steps = Generator[Pending[Any] | None, None, T]

_AT_ONCE_SECONDS = 0.002
_SLICE_SECONDS = 0.002


class LongRequests:
    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler
        self._ready: deque[_Work[Any]] = deque()
        self._scheduled = False

    def run(self, steps: Steps[T | Pending[T]]) -> T | Pending[T]:
        """What the steps return: now if they are done within a short while, else later."""
        end = perf_counter() + _AT_ONCE_SECONDS
        try:
            while True:
                waited_for = next(steps)
                if waited_for is not None and not waited_for.done:
                    break
                if perf_counter() > end:
                    waited_for = None
                    break
        except StopIteration as done:
            return cast("T | Pending[T]", done.value)
        work = _Work(steps)
        self._go_on_later(work, waited_for)
        return work.result

    def run_in_turn(self, steps: Steps[T | Pending[T]]) -> Pending[T]:
        """The same, begun not before it is their turn: for many who have much to do at the same time."""
        work = _Work(steps)
        self._queue(work)
        return work.result

    def _go_on_later(self, work: _Work[Any], waited_for: Pending[Any] | None) -> None:
        if waited_for is None:
            self._queue(work)
        else:
            work.waits_for = waited_for
            waited_for.then(lambda _: self._queue(work))

    def _queue(self, work: _Work[Any]) -> None:
        self._ready.append(work)
        if not self._scheduled:
            self._scheduled = True
            self._scheduler.soon(self._turn)

    def _turn(self) -> None:
        self._scheduled = False
        work = self._ready.popleft()
        waited_for = work.slice()
        if not work.result.done:
            self._go_on_later(work, waited_for)
        if self._ready and not self._scheduled:
            self._scheduled = True
            self._scheduler.soon(self._turn)


class _Work(Generic[T]):
    __slots__ = ("_steps", "result", "waits_for")

    def __init__(self, steps: Steps[T | Pending[T]]) -> None:
        self._steps = _to_the_end(steps)
        self.waits_for: Pending[Any] | None = None
        self.result: Pending[T] = Pending(self._abandoned)

    def slice(self) -> Pending[Any] | None:
        """Go on for a while. Returns what is waited for, if something is."""
        end = perf_counter() + _SLICE_SECONDS
        self.waits_for = None
        try:
            while not self.result.abandoned:
                waited_for = next(self._steps)
                if waited_for is not None and not waited_for.done:
                    return waited_for
                if perf_counter() > end:
                    return None
        except StopIteration as done:
            self.result.resolve(done.value)
        except Exception as error:
            self.result.fail(error)
        return None

    def _abandoned(self) -> None:
        self._steps.close()
        if self.waits_for is not None:
            self.waits_for.abandon()


def _to_the_end(steps: Steps[T | Pending[T]]) -> Steps[T]:
    """The same, with the result of what comes back if that, too, comes later."""
    value = yield from steps
    return (yield from wait(value)) if isinstance(value, Pending) else value


def at_once(steps: Steps[T]) -> T | None:
    """What the steps return if that takes only a short while; None: it takes longer, nothing was kept."""
    end = perf_counter() + _AT_ONCE_SECONDS
    try:
        while perf_counter() < end:
            next(steps)
    except StopIteration as done:
        return cast("T", done.value)
    return None


def holding(budget: Budget, size: int, steps: Steps[T]) -> Steps[T]:
    """The steps, begun when the budget has room for as many bytes, which they hold until their end.

    They must not wait for the budget themselves.
    """
    begun = budget.begin_work(size)
    try:
        yield from wait(begun)
        return (yield from steps)
    finally:
        if begun.succeeded:
            budget.end_work(size)
        else:
            begun.abandon()


def each(items: Iterable[T], function: Callable[[T], R]) -> Steps[list[R]]:
    """The function of every item; others have their turn in between."""
    results: list[R] = []
    for item in items:
        results.append(function(item))
        yield None
    return results


def each_of(
    groups: Iterable[tuple[K, Iterable[T]]], function: Callable[[K, T], R | Pending[R]]
) -> Steps[list[tuple[K, list[R]]]]:
    """The function of every item of every group. Results that come later are waited for at the end."""
    found: list[tuple[K, list[R]]] = []
    later: list[tuple[list[Any], int]] = []
    for key, items in groups:
        results: list[Any] = []
        found.append((key, results))
        for item in items:
            result = function(key, item)
            if isinstance(result, Pending):
                later.append((results, len(results)))
            results.append(result)
            yield None
        yield None
    for results, index in later:
        results[index] = yield from wait(results[index])
        yield None
    return found


class Lazy(Sequence[R]):
    """The function of every item, worked out when it is asked for."""

    __slots__ = ("_function", "_items")

    def __init__(self, items: Sequence[Any], function: Callable[[Any], R]) -> None:
        self._items = items
        self._function = function

    def __len__(self) -> int:
        return len(self._items)

    def __iter__(self) -> Iterator[R]:
        return map(self._function, self._items)

    def __getitem__(self, index: Any) -> Any:
        return self._function(self._items[index])

    def seen_by(self, look: Callable[[R], None]) -> Lazy[R]:
        """The same; each entry is shown to ``look`` when it is worked out."""
        function = self._function

        def shown(item: Any) -> R:
            entry = function(item)
            look(entry)
            return entry

        return Lazy(self._items, shown)


def lazily(items: Sequence[T], function: Callable[[T], R]) -> list[R]:
    """For an answer: entries that are made while it is encoded. The function must not raise."""
    return cast("list[R]", Lazy(items, function))
