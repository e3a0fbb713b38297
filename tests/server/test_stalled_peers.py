from __future__ import annotations

import pytest

from kbroker.network.budget import Budget
from kbroker.network.stalled_peers import MIN_BYTES, PERIOD_MS, StalledPeers


class Peer:
    """A connection as far as it matters here."""

    def __init__(self, progress: int | None) -> None:
        self.progress = progress


@pytest.fixture
def budget() -> Budget:
    """All of it is held, and somebody waits."""
    budget = Budget(10)
    budget.take(10)
    budget.reserve(5, lambda: None)
    return budget


def found(stalled: StalledPeers, peer: Peer, moves_per_second: int, seconds: int) -> bool:
    for now_ms in range(0, seconds * 1000, 1000):
        if stalled.find([peer], now_ms):  # type: ignore[list-item]
            return True
        if peer.progress is not None:
            peer.progress += moves_per_second
    return False


@pytest.mark.parametrize("moves_per_second", [0, 1, MIN_BYTES * 1000 // PERIOD_MS // 2])
def test_whoever_moves_little_or_nothing_is_found(budget: Budget, moves_per_second: int) -> None:
    assert found(StalledPeers(budget), Peer(100), moves_per_second, PERIOD_MS // 1000 + 3)


def test_whoever_gets_on_is_left_alone(budget: Budget) -> None:
    assert not found(StalledPeers(budget), Peer(100), MIN_BYTES, 60)


def test_whoever_holds_nothing_is_left_alone(budget: Budget) -> None:
    assert not found(StalledPeers(budget), Peer(None), 0, 60)


def test_as_long_as_nobody_waits_a_peer_may_be_slow() -> None:
    assert not found(StalledPeers(Budget(10)), Peer(100), 0, 60)


def test_the_next_frame_starts_a_new_period(budget: Budget) -> None:
    stalled = StalledPeers(budget)
    peer = Peer(MIN_BYTES * 2)
    for now_ms in range(0, 60_000, PERIOD_MS - 1000):
        assert not stalled.find([peer], now_ms)  # type: ignore[list-item]
        peer.progress = MIN_BYTES * 2 if peer.progress == 10 else 10
