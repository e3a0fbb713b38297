from __future__ import annotations

from kbroker.budget import Budget


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
