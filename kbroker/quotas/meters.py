"""How much was used lately, and how long to wait until it is within a bound again. As Kafka measures it.

`Rate` sums what was recorded in windows of time; the rate is the sum over the time since the oldest window
began, which counts as at least all windows but one. `TokenBucket` fills at the bound, holds what all windows
together may bring, and may go below zero.
"""

from __future__ import annotations

from math import floor
from typing import NamedTuple

MAX_THROTTLE_MS = (1 << 31) - 1


class Windows(NamedTuple):
    number: int
    size_ms: int

    @property
    def total_ms(self) -> int:
        return self.number * self.size_ms


class _Sample:
    __slots__ = ("last_ms", "start_ms", "value")

    def __init__(self, now_ms: int) -> None:
        self.reset(now_ms)

    def reset(self, now_ms: int) -> None:
        self.start_ms = self.last_ms = now_ms
        self.value = 0.0


class Rate:
    __slots__ = ("_current", "_obsolete_ms", "_oldest_ms", "_samples", "_sum", "_windows")

    def __init__(self, windows: Windows) -> None:
        self._windows = windows
        self._samples: list[_Sample] = []
        self._current = 0
        # Of all samples, so that most requests need not look at them.
        self._sum = 0.0
        self._oldest_ms = 0  # when the oldest began
        self._obsolete_ms = 0  # before this none of them ceases to count

    def record(self, value: float, now_ms: int) -> None:
        if not self._samples:
            self._samples.append(_Sample(now_ms))
            self._look_at_all()
        sample = self._samples[self._current]
        if now_ms - sample.start_ms >= self._windows.size_ms:
            sample = self._advance(now_ms)
        sample.value += value
        sample.last_ms = now_ms
        self._sum += value

    def throttle_ms(self, bound: float, now_ms: int) -> int:
        """How long nothing may be recorded until the rate per second is within the bound."""
        if now_ms >= self._obsolete_ms:
            self._reset_obsolete(now_ms)
        elapsed_ms = self._elapsed_ms(now_ms)
        rate = self._sum * 1000 / elapsed_ms
        if rate <= bound:
            return 0
        if bound <= 0:
            return MAX_THROTTLE_MS
        return min(floor((rate - bound) / bound * elapsed_ms + 0.5), MAX_THROTTLE_MS)

    def is_idle(self, now_ms: int) -> bool:
        """Whether nothing of what was recorded counts any more."""
        total_ms = self._windows.total_ms
        return all(now_ms - sample.last_ms >= total_ms for sample in self._samples)

    def _advance(self, now_ms: int) -> _Sample:
        # One more than there are windows: the oldest may reach into the time that counts.
        self._current = (self._current + 1) % (self._windows.number + 1)
        if self._current == len(self._samples):
            self._samples.append(_Sample(now_ms))
        else:
            self._samples[self._current].reset(now_ms)
        self._look_at_all()
        return self._samples[self._current]

    def _elapsed_ms(self, now_ms: int) -> int:
        number, size_ms = self._windows
        elapsed_ms = now_ms - self._oldest_ms
        missing = number - 1 - elapsed_ms // size_ms
        if missing > 0:
            elapsed_ms += missing * size_ms
        return max(elapsed_ms, 1)

    def _reset_obsolete(self, now_ms: int) -> None:
        for sample in self._samples:
            if now_ms - sample.last_ms >= self._windows.total_ms:
                sample.reset(now_ms)
        self._look_at_all(now_ms)

    def _look_at_all(self, now_ms: int = 0) -> None:
        self._sum = sum(sample.value for sample in self._samples)
        self._oldest_ms = min((sample.start_ms for sample in self._samples), default=now_ms)
        last_ms = min((sample.last_ms for sample in self._samples), default=now_ms)
        self._obsolete_ms = last_ms + self._windows.total_ms


class TokenBucket:
    __slots__ = ("_bound", "_tokens", "_updated_ms", "_windows")

    def __init__(self, windows: Windows) -> None:
        self._windows = windows
        self._bound = 0.0
        self._tokens = 0.0
        self._updated_ms: int | None = None  # nothing was recorded yet: it is full

    def record(self, value: float, bound: float, now_ms: int) -> None:
        self._refill(bound, now_ms)
        self._tokens = min(self._most(bound), self._tokens - value)

    def throttle_ms(self, bound: float, now_ms: int) -> int:
        """How long until it is not below zero any more."""
        self._refill(bound, now_ms)
        if self._tokens >= 0:
            return 0
        return min(floor(-self._tokens / bound * 1000 + 0.5), MAX_THROTTLE_MS)

    def is_idle(self, now_ms: int) -> bool:
        """Whether it is full again."""
        self._refill(self._bound, now_ms)
        return self._tokens >= self._most(self._bound)

    def _most(self, bound: float) -> float:
        return bound * self._windows.total_ms / 1000

    def _refill(self, bound: float, now_ms: int) -> None:
        self._bound = bound
        if self._updated_ms is None:
            self._tokens = self._most(bound)
        else:
            filled = bound * max(now_ms - self._updated_ms, 0) / 1000
            self._tokens = min(self._most(bound), self._tokens + filled)
        self._updated_ms = now_ms
