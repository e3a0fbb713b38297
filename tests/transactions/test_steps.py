from __future__ import annotations

import pytest

from kbroker.coordinators.turns import Turns
from kbroker.pending import Pending, Steps, run, wait


def test_a_sequence_goes_on_when_what_it_waits_for_is_there() -> None:
    first: Pending[int] = Pending()

    def steps() -> Steps[int]:
        one = yield from wait(first)
        two = yield from wait(Pending.resolved(2))
        return one + two

    result = run(steps())
    assert not result.done
    first.resolve(1)
    assert result.result() == 3


def test_a_failure_is_raised_where_it_was_waited_for() -> None:
    broken: Pending[int] = Pending()

    def steps() -> Steps[str]:
        try:
            yield from wait(broken)
        except ValueError:
            return "caught"
        return "not caught"

    result = run(steps())
    broken.fail(ValueError())
    assert result.result() == "caught"


def test_turns_of_one_key_come_in_order_and_those_of_others_at_once() -> None:
    turns = Turns()
    gates: list[Pending[None]] = []
    log: list[str] = []

    def steps(name: str) -> Steps[None]:
        log.append(f"{name} begins")
        gates.append(Pending())
        yield from wait(gates[-1])
        log.append(f"{name} ends")

    turns.take("a", lambda: steps("first")).then(lambda _: log.append("first is told"))
    turns.take("a", lambda: steps("second"))
    turns.take("b", lambda: steps("other"))
    assert log == ["first begins", "other begins"]
    assert "a" in turns
    gates[0].resolve(None)
    assert log[2:] == ["first ends", "first is told", "second begins"]
    gates[2].resolve(None)
    assert "a" not in turns


def test_a_turn_that_fails_lets_the_next_begin() -> None:
    turns = Turns()

    def fails() -> Steps[None]:
        raise ValueError("on purpose")
        yield

    def succeeds() -> Steps[int]:
        return 7
        yield

    failed = turns.take("a", fails)
    assert turns.take("a", succeeds).result() == 7
    with pytest.raises(ValueError, match="on purpose"):
        failed.result()


def test_a_follow_up_comes_after_the_result_was_told_and_before_those_that_wait() -> None:
    turns = Turns()
    gate: Pending[None] = Pending()
    log: list[str] = []

    def first() -> Steps[str]:
        turns.follow_up("a", follow_up)
        return "first is told"
        yield

    def follow_up() -> Steps[None]:
        log.append("follow-up begins")
        yield from wait(gate)
        log.append("follow-up ends")

    def second() -> Steps[None]:
        log.append("second")
        return
        yield

    def told(result: Pending[str]) -> None:
        log.append(result.result())
        turns.take("a", second)  # asked for by who was told

    held: Pending[None] = Pending()
    turns.take("a", lambda: wait(held))
    turns.take("a", first).then(told)
    held.resolve(None)
    assert log == ["first is told", "follow-up begins"]
    gate.resolve(None)
    assert log[2:] == ["follow-up ends", "second"]
    assert "a" not in turns


def test_what_follows_is_done_even_if_the_result_cannot_be_told(caplog: pytest.LogCaptureFixture) -> None:
    turns = Turns()
    gate: Pending[None] = Pending()
    done: list[str] = []

    def first() -> Steps[None]:
        yield from wait(gate)
        turns.follow_up("a", lambda: note("follow-up"))

    def note(what: str) -> Steps[None]:
        done.append(what)
        return
        yield

    def broken(_: Pending[None]) -> None:
        raise ValueError("on purpose")

    turns.take("a", first).then(broken)
    turns.take("a", lambda: note("second"))
    gate.resolve(None)
    assert done == ["follow-up", "second"]
    assert "on purpose" in caplog.text


def test_a_thousand_waiting_turns_that_need_no_wait() -> None:
    turns = Turns()
    gate: Pending[None] = Pending()

    def steps(value: int) -> Steps[int]:
        if not value:
            yield from wait(gate)
        return value

    results = [turns.take("a", lambda value=value: steps(value)) for value in range(5000)]
    gate.resolve(None)
    assert [result.result() for result in results] == list(range(5000))
