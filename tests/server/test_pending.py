"""Results that come later, and the ways to wait for them."""

from __future__ import annotations

import logging

import pytest

from kbroker.pending import Pending, join, mapped, run, wait


def test_a_waiter_that_fails_does_not_keep_others_from_the_result(caplog: pytest.LogCaptureFixture) -> None:
    result: Pending[int] = Pending()
    got: list[int] = []
    result.then(lambda _: got.append(1 // 0))
    result.then(lambda settled: got.append(settled.result()))
    with caplog.at_level(logging.ERROR):
        result.resolve(5)
    assert got == [5]
    assert "ZeroDivisionError" in caplog.text


def test_whoever_settles_several_results_settles_them_all(caplog: pytest.LogCaptureFixture) -> None:
    results: list[Pending[None]] = [Pending() for _ in range(3)]
    results[1].then(lambda _: 1 // 0)  # type: ignore[arg-type,return-value]
    with caplog.at_level(logging.CRITICAL):
        for each in results:
            each.resolve(None)
    assert [each.succeeded for each in results] == [True, True, True]


@pytest.mark.parametrize("later", [False, True])
def test_a_result_is_mapped_whenever_it_comes(later: bool) -> None:
    part: Pending[int] = Pending()
    if not later:
        part.resolve(5)
    result = mapped(part, str)
    if later:
        assert isinstance(result, Pending)
        part.resolve(5)
        result = result.result()
    assert result == "5"
    assert mapped(5, str) == "5"


@pytest.mark.parametrize("later", [False, True])
def test_a_failure_is_mapped_whenever_it_comes(later: bool) -> None:
    part: Pending[int] = Pending()
    if not later:
        part.fail(OSError("no room"))
    result = mapped(part, str, otherwise=lambda error: f"sorry, {error}")
    if later:
        assert isinstance(result, Pending)
        part.fail(OSError("no room"))
        result = result.result()
    assert result == "sorry, no room"


def test_a_failure_of_the_mapping_itself_is_not_mapped() -> None:
    part: Pending[int] = Pending()
    result = mapped(part, lambda value: 1 // value, otherwise=lambda _: 0)
    assert isinstance(result, Pending)
    part.resolve(0)
    with pytest.raises(ZeroDivisionError):
        result.result()


def test_to_abandon_what_was_mapped_or_joined_abandons_its_parts() -> None:
    gone: list[str] = []
    one: Pending[int] = Pending(lambda: gone.append("one"))
    other: Pending[int] = Pending(lambda: gone.append("other"))
    joined = join([one, 2], sum)
    result = mapped(other, str)
    assert isinstance(joined, Pending)
    assert isinstance(result, Pending)
    joined.abandon()
    result.abandon()
    assert gone == ["one", "other"]


def test_parts_are_joined_in_their_order_whenever_they_come() -> None:
    first: Pending[int] = Pending()
    third: Pending[int] = Pending()
    joined = join([first, 2, third], list)
    assert isinstance(joined, Pending)
    third.resolve(3)
    assert not joined.done
    first.resolve(1)
    assert joined.result() == [1, 2, 3]
    assert join([1, 2], list) == [1, 2]


def test_steps_wait_in_between_and_raise_what_failed() -> None:
    part: Pending[int] = Pending()
    failing: Pending[int] = Pending()

    def steps():
        value = yield from wait(part)
        try:
            yield from wait(failing)
        except OSError as error:
            return value, str(error)

    result = run(steps())
    part.resolve(5)
    assert not result.done
    failing.fail(OSError("no room"))
    assert result.result() == (5, "no room")
