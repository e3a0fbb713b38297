"""How much of what brings nothing a peer may send."""

from __future__ import annotations

from kbroker.grpc.floods import FRAME, RESET, Patience


def used_up_after(cost: int) -> int:
    patience = Patience(0)
    return next(count for count in range(100_000) if not patience.spend(cost, 0))


def test_who_only_floods_has_soon_used_it_up() -> None:
    assert 1000 < used_up_after(FRAME) < 20_000
    assert used_up_after(FRAME) > 3 * used_up_after(RESET)


def test_it_comes_back_with_time() -> None:
    patience = Patience(0)
    while patience.spend(FRAME, 0):
        pass
    assert not patience.spend(FRAME, 0)
    assert patience.spend(FRAME, 1000)


def test_small_calls_may_go_on_for_ever() -> None:
    """A call has a message there and one back; clients add windows and pings, some five frames."""
    patience = Patience(0)
    for _ in range(100_000):
        patience.earn_message()
        patience.earn_message()
        assert all(patience.spend(FRAME, 0) for _ in range(5))


def test_what_moves_much_data_may_open_many_windows() -> None:
    patience = Patience(0)
    for _ in range(100_000):
        patience.earn(16_384)
        assert all(patience.spend(FRAME, 0) for _ in range(8))
