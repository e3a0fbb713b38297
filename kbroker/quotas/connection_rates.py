"""How fast new connections may come: to the broker, to a listener, from an IP address (KIP-612).

What is too fast for the broker or a listener waits until it is not. What is too fast for an address waits as
well, and is closed then. A listener takes one connection after the other, so those behind one that waits wait
longer. No connection waits for more than one window for its own sake.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import NamedTuple

from kbroker.quotas.meters import Rate, Windows

_FEWEST_METERS = 1000  # of addresses, before unused ones are looked for


class Arrival(NamedTuple):
    """What becomes of a connection."""

    wait_ms: int
    stays: bool  # after the wait


class ConnectionRates:
    """Exists while a rate is set."""

    def __init__(self, windows: Windows, most_waiting: int) -> None:
        """``most_waiting``: connections of a listener that may wait; the next one is closed at once."""
        self._windows = windows
        self._most_waiting = most_waiting
        self._broker_bound: float | None = None
        self._listener_bounds: Mapping[str, float] = {}
        self._ip_bounds: Mapping[str | None, float] = {}
        self._broker = Rate(windows)
        self._listeners: dict[str, Rate] = {}
        self._ips: dict[str, Rate] = {}
        self._waiting: dict[str, deque[int]] = {}  # by listener: when those that wait are taken
        self._look_above = _FEWEST_METERS

    def put_in_force(
        self, broker: float | None, listeners: Mapping[str, float], ips: Mapping[str | None, float]
    ) -> bool:
        """The rates as they are now, None for the address: the default. Whether there are any."""
        self._broker_bound = broker
        self._listener_bounds = listeners
        self._ip_bounds = ips
        return broker is not None or bool(listeners) or bool(ips)

    def arrive(self, listener: str, address: str, now_ms: int) -> Arrival:
        """A connection is there."""
        waiting = self._waiting.setdefault(listener, deque())
        while waiting and waiting[0] <= now_ms:
            waiting.popleft()
        if len(waiting) >= self._most_waiting:
            return Arrival(0, stays=False)
        taken_ms = waiting[-1] if waiting else now_ms  # when the listener gets to it
        wait_ms = max(
            self._throttle_ms(self._broker, self._broker_bound, taken_ms),
            self._throttle_ms(self._listener(listener), self._listener_bounds.get(listener), taken_ms),
        )
        taken_ms += wait_ms
        if taken_ms > now_ms:
            waiting.append(taken_ms)
        closed_after_ms = self._too_fast_from(address, taken_ms)
        if closed_after_ms:
            for rate in (self._broker, self._listener(listener)):
                rate.record(-1, taken_ms)  # it does not become one of theirs
        return Arrival(taken_ms - now_ms + closed_after_ms, stays=not closed_after_ms)

    def _too_fast_from(self, address: str, now_ms: int) -> int:
        """How long to hold a connection from there until it is closed; 0: it may stay."""
        bound = self._ip_bounds.get(address, self._ip_bounds.get(None))
        if bound is None:
            return 0
        rate = self._ips.get(address)
        if rate is None:
            self._forget_unused(now_ms)
            rate = self._ips[address] = Rate(self._windows)
        wait_ms = self._throttle_ms(rate, bound, now_ms)
        if wait_ms:
            rate.record(-1, now_ms)
        return wait_ms

    def _throttle_ms(self, rate: Rate, bound: float | None, now_ms: int) -> int:
        rate.record(1, now_ms)
        return 0 if bound is None else min(rate.throttle_ms(bound, now_ms), self._windows.size_ms)

    def _listener(self, name: str) -> Rate:
        rate = self._listeners.get(name)
        if rate is None:
            rate = self._listeners[name] = Rate(self._windows)
        return rate

    def _forget_unused(self, now_ms: int) -> None:
        if len(self._ips) >= self._look_above:
            self._ips = {address: rate for address, rate in self._ips.items() if not rate.is_idle(now_ms)}
            self._look_above = max(2 * len(self._ips), _FEWEST_METERS)
