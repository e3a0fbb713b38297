from __future__ import annotations

from collections import deque
from collections.abc import Callable

import pytest

from kbroker.network.budget import Budget
from kbroker.pending import Pending, wait
from kbroker.requests import long_requests
from kbroker.requests.long_requests import LongRequests, Steps, at_once, each, holding, lazily

SLICE = 10  # looks at the clock


class Turns:
    """Timers whose turns a test takes one by one."""

    def __init__(self) -> None:
        self.waiting: deque[Callable[[], None]] = deque()

    def after(self, delay_ms: int, callback: Callable[[], None]) -> Callable[[], None]:
        raise NotImplementedError

    def soon(self, callback: Callable[[], None]) -> None:
        self.waiting.append(callback)

    def take(self) -> None:
        self.waiting.popleft()()


@pytest.fixture(autouse=True)
def _clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every look at the clock is a tenth of a slice."""
    now = 0.0

    def look() -> float:
        nonlocal now
        now += long_requests._SLICE_SECONDS / SLICE
        return now

    monkeypatch.setattr(long_requests, "perf_counter", look)


@pytest.fixture
def turns() -> Turns:
    return Turns()


@pytest.fixture
def long(turns: Turns) -> LongRequests:
    return LongRequests(turns)


def counting(count: int, log: list[str] | None = None, name: str = "") -> Steps[int]:
    for _ in range(count):
        if log is not None:
            log.append(name)
        yield None
    return count


def test_what_takes_a_short_while_is_done_at_once(long: LongRequests, turns: Turns) -> None:
    assert long.run(counting(3)) == 3
    assert not turns.waiting


def test_what_takes_longer_goes_on_in_later_turns(long: LongRequests, turns: Turns) -> None:
    result = long.run(counting(100))
    assert isinstance(result, Pending)
    taken = 0
    while not result.done:
        turns.take()
        taken += 1
    assert result.result() == 100
    assert taken > 100 // SLICE / 2
    assert not turns.waiting


def test_several_take_turns_with_each_other(long: LongRequests, turns: Turns) -> None:
    log: list[str] = []
    first, second = long.run(counting(100, log, "a")), long.run(counting(30, log, "b"))
    assert isinstance(first, Pending)
    assert isinstance(second, Pending)
    while not second.done:
        turns.take()
    assert not first.done
    while not first.done:
        turns.take()
    assert log.count("a") == 100
    assert log.count("b") == 30


def test_what_is_to_wait_for_its_turn_does_nothing_at_once(long: LongRequests, turns: Turns) -> None:
    log: list[str] = []
    first = long.run_in_turn(counting(1, log, "a"))
    second = long.run_in_turn(counting(1, log, "b"))
    assert log == []
    turns.take()
    assert (log, first.done, second.done) == (["a"], True, False)
    turns.take()
    assert (log, second.result()) == (["a", "b"], 1)


def test_a_pending_is_waited_for_without_taking_turns(long: LongRequests, turns: Turns) -> None:
    awaited: Pending[str] = Pending()

    def steps() -> Steps[str]:
        return (yield from wait(awaited))

    result = long.run(steps())
    assert isinstance(result, Pending)
    assert not turns.waiting
    awaited.resolve("there")
    turns.take()
    assert result.result() == "there"


def test_a_pending_that_is_returned_is_waited_for_too(long: LongRequests, turns: Turns) -> None:
    later: Pending[str] = Pending()

    def steps() -> Steps[str | Pending[str]]:
        yield from counting(50)
        return later

    result = long.run(steps())
    assert isinstance(result, Pending)
    while turns.waiting:
        turns.take()
    assert not result.done
    later.resolve("there")
    turns.take()
    assert result.result() == "there"


def test_an_exception_fails_the_result_and_nothing_else(long: LongRequests, turns: Turns) -> None:
    def failing() -> Steps[int]:
        yield from counting(50)
        raise ValueError

    result, other = long.run(failing()), long.run(counting(50))
    assert isinstance(result, Pending)
    assert isinstance(other, Pending)
    while turns.waiting:
        turns.take()
    with pytest.raises(ValueError):  # noqa: PT011
        result.result()
    assert other.result() == 50


def test_nobody_waits_any_more_then_the_steps_are_closed_where_they_stand(
    long: LongRequests, turns: Turns
) -> None:
    closed: list[bool] = []
    awaited: Pending[None] = Pending(lambda: closed.append(True))

    def steps() -> Steps[None]:
        try:
            yield from counting(50)
            yield from wait(awaited)
        finally:
            closed.append(True)

    at_work = long.run(steps())
    assert isinstance(at_work, Pending)
    at_work.abandon()
    assert closed == [True]
    waiting = long.run(steps())
    assert isinstance(waiting, Pending)
    while turns.waiting:
        turns.take()
    assert not waiting.done
    waiting.abandon()
    assert closed == [True] * 3
    assert awaited.abandoned


def test_steps_hold_bytes_of_the_budget_from_their_beginning_to_their_end(
    long: LongRequests, turns: Turns
) -> None:
    budget = Budget(100)
    budget.take(60)
    result = long.run(holding(budget, 50, counting(50)))
    assert isinstance(result, Pending)
    assert budget.used == 60
    budget.give_back(60)
    assert budget.used == 50
    while turns.waiting:
        turns.take()
    assert result.result() == 50
    assert budget.used == 0


@pytest.mark.parametrize("begun", [False, True])
def test_bytes_of_steps_that_nobody_waits_for_are_given_back(
    long: LongRequests, turns: Turns, begun: bool
) -> None:
    budget = Budget(100)
    if not begun:
        budget.take(60)
    result = long.run(holding(budget, 50, counting(50)))
    assert isinstance(result, Pending)
    result.abandon()
    assert budget.used == (0 if begun else 60)
    assert not budget.contended


def test_bytes_that_steps_waited_for_in_vain_are_not_given_back(long: LongRequests, turns: Turns) -> None:
    budget = Budget(100)
    budget.take(60)
    steps = holding(budget, 50, counting(50))
    waited_for = next(steps)
    assert waited_for is not None
    waited_for.abandon()  # by whoever waits for the steps, before it closes them
    steps.close()
    assert budget.used == 60
    assert not budget.contended


def test_at_once_or_not_at_all() -> None:
    assert at_once(counting(3)) == 3
    assert at_once(counting(100)) is None


def test_each_gives_others_a_turn_after_every_item(long: LongRequests, turns: Turns) -> None:
    result = long.run(each(range(50), lambda n: n * 2))
    assert isinstance(result, Pending)
    while turns.waiting:
        turns.take()
    assert result.result() == [n * 2 for n in range(50)]


def test_lazily_nothing_is_made_before_it_is_asked_for() -> None:
    made: list[int] = []
    numbers = lazily([1, 2, 3], lambda n: made.append(n) or n * 2)  # type: ignore[func-returns-value]
    assert len(numbers) == 3
    assert not made
    assert list(numbers) == [2, 4, 6]
    assert numbers[1] == 4
