"""How long the first rebalance of an empty group waits, so that members that start together share one
generation.

With group.initial.rebalance.delay.ms set, as Kafka does it: a delay in which somebody came is followed by
another, up to the rebalance timeout. By default adaptive: until nobody has come for QUIET_MS, at most MAX_MS.
"""

from __future__ import annotations

QUIET_MS = 100
MAX_MS = 3_000


class InitialDelay:
    __slots__ = ("_configured_ms", "_limit_ms", "_member_came")

    def __init__(self, configured_ms: int | None) -> None:
        self._configured_ms = configured_ms
        self._limit_ms = 0
        self._member_came = False

    def begin(self, now_ms: int, rebalance_timeout_ms: int) -> int:
        """The deadline of a delay that begins now, with the first member."""
        self._member_came = False
        if self._configured_ms is None:
            self._limit_ms = now_ms + min(MAX_MS, rebalance_timeout_ms)
            return min(now_ms + QUIET_MS, self._limit_ms)
        self._limit_ms = now_ms + max(rebalance_timeout_ms, self._configured_ms)
        return now_ms + self._configured_ms

    def member_came(self, now_ms: int) -> int | None:
        """The deadline to move to, if that changes it."""
        self._member_came = True
        return min(now_ms + QUIET_MS, self._limit_ms) if self._configured_ms is None else None

    def deadline_after(self, now_ms: int) -> int | None:
        """The deadline has come: the next one, or None if the wait is over."""
        if self._configured_ms is None or not self._member_came or now_ms >= self._limit_ms:
            return None
        self._member_came = False
        return min(now_ms + self._configured_ms, self._limit_ms)
