"""Offset commits of many clients, stored together: one transaction for many of them.

Where the store can note them, a commit is done when it is noted, and what was noted is folded into the rest
FOLD_MS later. Where it cannot (the disk must have them first, or there is none), each commit is stored at
once as long as few clients commit. When more do, theirs are stored every LINGER_MS together, or sooner, once
half of the clients that committed lately wait: those that commit as fast as they can are not held up, and one
half goes on while the other's commits are stored. So a thousand clients that commit once a second cost some
fifty transactions a second.

Invariants: the commits of one partition are stored in the order they came; `flush` hands everything that is
held to the store, so that whatever else is stored about offsets comes after it.
"""

from __future__ import annotations

import logging
from collections.abc import Hashable

from kbroker.coordinators.groups.store import CommittedOffset, GroupStore, Offsets, TopicPartition
from kbroker.coordinators.timers import Timers
from kbroker.storage.pending import Pending

logger = logging.getLogger("kbroker.groups")

FOLD_MS = 1000
LINGER_MS = 20
_RECENT_MS = 2 * LINGER_MS
_FEW = 4
_TIMER = "held offset commits"
_FOLD_TIMER = "noted offset commits"


class CommitGrouping:
    def __init__(self, store: GroupStore, timers: Timers) -> None:
        self._store = store
        self._timers = timers
        self._recent: dict[Hashable, int] = {}
        """When each client last committed, the oldest first."""
        self._waiting: set[Hashable] = set()
        self._held: dict[str, dict[TopicPartition, CommittedOffset]] = {}
        self._stored: Pending[None] = Pending()
        self._flushed_ms = 0

    def note(self, group_id: str, offsets: Offsets, now_ms: int) -> bool:
        """Store the offsets at once, where the store can note them. Raises where it can but fails."""
        if not self._store.note_offsets(group_id, offsets):
            return False
        self._timers.advance(now_ms)
        self._timers.schedule_if_absent(_FOLD_TIMER, now_ms + FOLD_MS, self._fold_at)
        return True

    def commit(self, client: Hashable, group_id: str, offsets: Offsets, now_ms: int) -> Pending[None]:
        """Settled when the offsets are stored, or could not be."""
        self._timers.advance(now_ms)
        recent = self._recent
        recent.pop(client, None)
        recent[client] = now_ms
        while recent[oldest := next(iter(recent))] <= now_ms - _RECENT_MS:
            del recent[oldest]
        self._waiting.add(client)
        self._held.setdefault(group_id, {}).update(offsets)
        stored = self._stored
        lingering = self._flushed_ms <= now_ms < self._flushed_ms + LINGER_MS
        if lingering and len(recent) > _FEW and 2 * len(self._waiting) < len(recent):
            self._timers.schedule_if_absent(_TIMER, self._flushed_ms + LINGER_MS, self._flush_at)
        else:
            self._flush_at(now_ms)
        return stored

    def flush(self) -> None:
        """Store what is held now."""
        if self._held:
            self._flush_at(self._timers.now_ms)

    def close(self) -> None:
        self.flush()
        self._timers.cancel(_FOLD_TIMER)
        self._store.fold().then(lambda _: self._store.close())

    def _fold_at(self, now_ms: int) -> None:
        self._store.fold().then(self._folded)

    def _folded(self, done: Pending[None]) -> None:
        try:
            done.result()
        except Exception:
            logger.warning("offset commits could not be moved into the catalog, trying again", exc_info=True)
            again_ms = self._timers.now_ms + FOLD_MS
            self._timers.schedule_if_absent(_FOLD_TIMER, again_ms, self._fold_at)

    def _flush_at(self, now_ms: int) -> None:
        held, stored = self._held, self._stored
        self._held, self._stored = {}, Pending()
        self._waiting.clear()
        self._flushed_ms = now_ms
        self._timers.cancel(_TIMER)
        self._store.commit_offsets(held).then(stored.follow)
