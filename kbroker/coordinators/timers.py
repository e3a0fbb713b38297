"""Timers of the coordinators: what is due when, with time passed in.

A timer is named by its key; scheduling a key again moves it. Moving a timer to a later time, which is what
every heartbeat does, costs one dictionary update: the heap keeps the old, earlier entry and finds out when it
comes up.

Invariants: every timer has one entry in the heap, at or before its deadline (entries of cancelled timers, or
of timers moved forward, are dropped when they come up); an action may schedule and cancel timers.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Hashable

Action = Callable[[int], None]

_LARGE = 1_000
"""From this size on the heap is rid of dropped entries when they are most of it."""


class _Timer:
    __slots__ = ("action", "deadline_ms", "queued_ms")

    def __init__(self, deadline_ms: int, action: Action) -> None:
        self.deadline_ms = deadline_ms
        self.action = action
        self.queued_ms = deadline_ms


class Timers:
    __slots__ = ("_heap", "_sequence", "_timers", "now_ms", "on_sooner")

    def __init__(self) -> None:
        self._timers: dict[Hashable, _Timer] = {}
        self._heap: list[tuple[int, int, Hashable, _Timer]] = []
        self._sequence = 0
        self.on_sooner: Callable[[], None] | None = None
        """Called when a timer comes to stand before all others: `next_deadline` is sooner than it was."""
        self.now_ms = 0
        """The latest time any caller passed in: for what happens between requests, like a finished write."""

    def __len__(self) -> int:
        return len(self._timers)

    def __contains__(self, key: Hashable) -> bool:
        return key in self._timers

    def advance(self, now_ms: int) -> None:
        """Take note of the time, without firing anything. Time does not go back."""
        self.now_ms = max(self.now_ms, now_ms)

    def schedule(self, key: Hashable, deadline_ms: int, action: Action) -> None:
        timer = self._timers.get(key)
        if timer is not None and timer.queued_ms <= deadline_ms:
            timer.deadline_ms = deadline_ms
            timer.action = action
            return
        timer = self._timers[key] = _Timer(deadline_ms, action)
        self._push(key, timer)

    def schedule_if_absent(self, key: Hashable, deadline_ms: int, action: Action) -> None:
        if key not in self._timers:
            self.schedule(key, deadline_ms, action)

    def cancel(self, key: Hashable) -> None:
        self._timers.pop(key, None)

    def next_deadline(self) -> int | None:
        """When `fire` should be called next; never later than the earliest timer."""
        self._drop_stale()
        return self._heap[0][0] if self._heap else None

    def fire(self, now_ms: int) -> None:
        """Run every action due at `now_ms`."""
        self.advance(now_ms)
        heap = self._heap
        while heap and heap[0][0] <= now_ms:
            _, _, key, timer = heapq.heappop(heap)
            if self._timers.get(key) is not timer:
                continue
            if timer.deadline_ms > now_ms:
                self._push(key, timer)
                continue
            del self._timers[key]
            timer.action(now_ms)

    def _push(self, key: Hashable, timer: _Timer) -> None:
        heap = self._heap
        if len(heap) > _LARGE and len(heap) > 4 * len(self._timers):
            heap[:] = [entry for entry in heap if self._timers.get(entry[2]) is entry[3]]
            heapq.heapify(heap)
        timer.queued_ms = timer.deadline_ms
        self._sequence += 1
        heapq.heappush(heap, (timer.deadline_ms, self._sequence, key, timer))
        if self.on_sooner is not None and heap[0][3] is timer:
            self.on_sooner()

    def _drop_stale(self) -> None:
        heap = self._heap
        while heap:
            queued_ms, _, key, timer = heap[0]
            if self._timers.get(key) is timer:
                if timer.deadline_ms == queued_ms:
                    return
                heapq.heappop(heap)
                self._push(key, timer)
            else:
                heapq.heappop(heap)
