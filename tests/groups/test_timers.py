"""Timers of the coordinators."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from kbroker.coordinators.timers import Timers


def test_actions_run_when_they_are_due_in_the_order_of_their_deadlines():
    timers, ran = Timers(), []
    for deadline_ms in (30, 10, 20):
        timers.schedule(deadline_ms, deadline_ms, lambda now_ms, each=deadline_ms: ran.append((each, now_ms)))
    timers.fire(9)
    assert ran == []
    timers.fire(25)
    assert ran == [(10, 25), (20, 25)]
    assert timers.next_deadline() == 30


def test_a_timer_scheduled_again_moves():
    timers, ran = Timers(), []
    timers.schedule("a", 10, lambda now_ms: ran.append("first"))
    timers.schedule("a", 20, lambda now_ms: ran.append("second"))
    timers.fire(15)
    assert ran == []
    timers.schedule("a", 17, lambda now_ms: ran.append("third"))
    assert timers.next_deadline() == 17
    timers.fire(100)
    assert ran == ["third"]
    assert len(timers) == 0


def test_a_cancelled_timer_does_nothing():
    timers, ran = Timers(), []
    timers.schedule("a", 10, lambda now_ms: ran.append("a"))
    timers.cancel("a")
    timers.cancel("never there")
    assert timers.next_deadline() is None
    timers.fire(100)
    assert ran == []


def test_an_action_may_schedule_more():
    timers, ran = Timers(), []
    timers.schedule("a", 10, lambda now_ms: timers.schedule("b", now_ms, ran.append))
    timers.fire(10)
    assert ran == [10]


def test_time_does_not_go_back():
    timers = Timers()
    timers.advance(50)
    timers.advance(40)
    assert timers.now_ms == 50


def test_whoever_waits_hears_of_a_sooner_deadline():
    timers, heard = Timers(), []
    timers.on_sooner = lambda: heard.append(timers.next_deadline())
    timers.schedule("a", 30, lambda now_ms: None)
    timers.schedule("b", 40, lambda now_ms: None)
    timers.schedule("c", 20, lambda now_ms: None)
    assert heard == [30, 20]


def test_dropped_timers_do_not_pile_up():
    timers = Timers()
    for number in range(100_000):
        timers.schedule(number, 1_000_000, lambda now_ms: None)
        timers.cancel(number)
    assert len(timers._heap) <= 1_001


@given(
    st.lists(
        st.one_of(
            st.tuples(st.just("schedule"), st.integers(0, 5), st.integers(0, 50)),
            st.tuples(st.just("cancel"), st.integers(0, 5), st.just(0)),
            st.tuples(st.just("fire"), st.just(0), st.integers(0, 10)),
        )
    )
)
def test_timers_do_what_a_plain_dictionary_of_deadlines_does(steps):
    timers, now_ms = Timers(), 0
    expected: dict[int, int] = {}
    fired: list[int] = []
    for what, key, amount in steps:
        if what == "schedule":
            expected[key] = now_ms + amount
            timers.schedule(key, now_ms + amount, lambda _, key=key: fired.append(key))
        elif what == "cancel":
            expected.pop(key, None)
            timers.cancel(key)
        else:
            now_ms += amount
            fired.clear()
            timers.fire(now_ms)
            due = [key for key, deadline_ms in expected.items() if deadline_ms <= now_ms]
            assert sorted(fired) == sorted(due)
            for each in due:
                del expected[each]
        assert timers.next_deadline() == min(expected.values(), default=None)
