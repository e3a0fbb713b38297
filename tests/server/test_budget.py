from __future__ import annotations

from kbroker.network.budget import Budget


def test_what_fits_overtakes_what_does_not() -> None:
    budget = Budget(100)
    granted: list[str] = []
    budget.reserve(80, lambda: granted.append("first"))
    budget.reserve(50, lambda: granted.append("large"))
    budget.reserve(20, lambda: granted.append("small"))
    assert granted == ["first", "small"]
    assert budget.contended
    budget.give_back(80)
    assert granted == ["first", "small", "large"]
    assert not budget.contended


def test_more_than_the_whole_budget_is_granted_when_nothing_else_is_held() -> None:
    budget = Budget(100)
    granted: list[str] = []
    budget.take(1)
    budget.reserve(1000, lambda: granted.append("huge"))
    assert not granted
    budget.give_back(1)
    assert granted == ["huge"]


def test_a_withdrawn_wish_is_forgotten() -> None:
    budget = Budget(100)
    granted: list[str] = []
    budget.take(100)
    withdraw = budget.reserve(60, lambda: granted.append("gone"))
    budget.reserve(50, lambda: granted.append("stays"))
    assert withdraw is not None
    withdraw()
    withdraw()
    budget.give_back(100)
    assert granted == ["stays"]
    assert budget.used == 50


def test_thousands_that_give_back_at_once_what_they_are_granted_are_all_granted() -> None:
    budget = Budget(100)
    budget.take(100)
    granted = 0

    def use() -> None:
        nonlocal granted
        granted += 1
        budget.give_back(100)

    for _ in range(5000):
        budget.reserve(100, use)
    budget.give_back(100)
    assert granted == 5000
    assert budget.used == 0


def test_the_only_work_begins_whatever_is_set_aside_for_those_who_wait() -> None:
    budget = Budget(100)
    budget.set_aside(90)
    first, second = budget.begin_work(60), budget.begin_work(60)
    assert first.done
    assert not second.done
    budget.end_work(60)
    assert second.done
    budget.end_work(60)
    budget.take_up(90)
    assert budget.used == 0


def test_work_waits_for_what_others_hold() -> None:
    budget = Budget(100)
    budget.set_aside(50)
    budget.take(60)
    work = budget.begin_work(60)
    assert not work.done
    budget.give_back(60)
    assert work.done


def test_work_that_nobody_wants_any_more_reserves_nothing() -> None:
    budget = Budget(100)
    budget.take(60)
    budget.begin_work(60).abandon()
    assert not budget.contended
    budget.give_back(60)
    assert budget.used == 0


def test_what_is_set_aside_does_not_keep_answers_from_being_made() -> None:
    budget = Budget(100)
    budget.set_aside(200)
    assert budget.available == 100
    assert budget.tight
    assert budget.reserve(50, lambda: None) is None


def test_bodies_go_on_only_in_half_of_it_but_for_the_oldest() -> None:
    budget = Budget(100)
    granted: list[str] = []

    def reserve(body: str, size: int) -> None:
        budget.reserve_for_body(size, lambda: granted.append(body), body)

    reserve("a", 30)
    reserve("b", 20)
    reserve("b", 10)  # half is used
    budget.reserve(20, lambda: granted.append("frame"), frame="frame")
    reserve("a", 30)  # the oldest
    assert granted == ["a", "b", "frame", "a"]
    assert budget.used == 100
    budget.body_ended("a")
    assert granted[4:] == ["b"], "now it is the oldest"
    reserve("c", 10)
    budget.give_back(69)
    assert granted[5:] == [], "still more than half with its own"
    budget.give_back(1)
    assert granted[5:] == ["c"]
