"""Offset commits of many clients, stored together: one write for many of them.

Where the store can journal them, those that come in one turn of the loop are journaled with one write at its
end. A commit that comes when no other client's just did is journaled at once. The journal is applied to the
rest APPLY_MS later.

Where the store cannot (the disk must have them first, or there is none), each commit is stored at once as
long as few clients commit. When more do, theirs are stored every LINGER_MS together, or sooner, once half of
the clients that committed lately wait: those that commit as fast as they can are not held up, and one half
goes on while the other's commits are stored. So a thousand clients that commit once a second cost some fifty
transactions a second.

Invariants: the commits of one partition are stored in the order they came; `flush` hands everything that is
held to the store, so that whatever else is stored about offsets comes after it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Hashable, Mapping

from kbroker.coordinators.groups.errors import GroupError
from kbroker.coordinators.groups.store import GroupStore, Offsets, TopicPartition
from kbroker.coordinators.timers import Timers
from kbroker.pending import Pending

logger = logging.getLogger("kbroker.groups")

APPLY_MS = 1000
LINGER_MS = 20
_RECENT_MS = 2 * LINGER_MS
_FEW = 4
_TIMER = "held offset commits"
_APPLY_TIMER = "journaled offset commits"

CommitErrors = dict[TopicPartition, GroupError]
"""Why offsets of a request were not committed; all others were."""


class Commit(Pending[CommitErrors]):
    """The offsets of one request on their way to the store; settled when they show or could not be stored."""

    __slots__ = ("errors", "group_id", "offsets")

    def __init__(self, group_id: str, offsets: Offsets, errors: CommitErrors) -> None:
        super().__init__()
        self.group_id = group_id
        self.offsets = offsets
        self.errors = errors


Written = Callable[[list[Commit], Pending[None]], None]


class CommitGrouping:
    def __init__(
        self,
        store: GroupStore,
        timers: Timers,
        soon: Callable[[Callable[[], None]], None],
        on_written: Written,
    ) -> None:
        """`on_written` is told which commits are written together, and given the result to come."""
        self._store = store
        self._timers = timers
        self._soon = soon
        self._on_written = on_written
        self._held: list[Commit] = []
        self._last: tuple[Hashable, int] = None, 0
        """Who committed last, and when."""
        self._recent: dict[Hashable, int] = {}
        """When each client last committed, the oldest first."""
        self._waiting: set[Hashable] = set()
        self._flushed_ms = 0

    def add(self, client: Hashable, commit: Commit, now_ms: int) -> None:
        self._timers.advance(now_ms)
        self._held.append(commit)
        if self._store.journals:
            if len(self._held) == 1:
                self._soon_or_now(client, now_ms)
            self._last = client, now_ms
        elif self._may_wait(client, now_ms):
            self._timers.schedule_if_absent(_TIMER, self._flushed_ms + LINGER_MS, self._flush_at)
        else:
            self._flush_at(now_ms)

    def flush(self) -> None:
        """Store what is held now."""
        if self._held:
            self._flush_at(self._timers.now_ms)

    def close(self) -> None:
        self.flush()
        self._timers.cancel(_APPLY_TIMER)
        self._store.apply_journal().then(lambda _: self._store.close())

    def _soon_or_now(self, client: Hashable, now_ms: int) -> None:
        """Others are to be expected in this turn if another one came in this millisecond."""
        last_client, last_ms = self._last
        if client == last_client or now_ms != last_ms:
            self._flush_at(now_ms)
        else:
            self._soon(self.flush)

    def _may_wait(self, client: Hashable, now_ms: int) -> bool:
        recent = self._recent
        recent.pop(client, None)
        recent[client] = now_ms
        while recent[oldest := next(iter(recent))] <= now_ms - _RECENT_MS:
            del recent[oldest]
        self._waiting.add(client)
        lingering = self._flushed_ms <= now_ms < self._flushed_ms + LINGER_MS
        return lingering and len(recent) > _FEW and 2 * len(self._waiting) < len(recent)

    def _flush_at(self, now_ms: int) -> None:
        held, self._held = self._held, []
        groups: dict[str, Offsets] = {}
        for commit in held:
            earlier = groups.get(commit.group_id)
            groups[commit.group_id] = commit.offsets if earlier is None else {**earlier, **commit.offsets}
        if self._store.journals:
            self._on_written(held, self._journal(groups, now_ms))
            return
        self._waiting.clear()
        self._flushed_ms = now_ms
        self._timers.cancel(_TIMER)
        self._on_written(held, self._store.commit_offsets(groups))

    def _journal(self, groups: Mapping[str, Offsets], now_ms: int) -> Pending[None]:
        journaled: Pending[None] = Pending()
        try:
            self._store.journal_offsets(groups)
        except Exception as error:
            journaled.fail(error)
        else:
            self._timers.schedule_if_absent(_APPLY_TIMER, now_ms + APPLY_MS, self._apply_at)
            journaled.resolve(None)
        return journaled

    def _apply_at(self, now_ms: int) -> None:
        self._store.apply_journal().then(self._applied)

    def _applied(self, done: Pending[None]) -> None:
        try:
            done.result()
        except Exception:
            logger.warning("offset commits could not be moved into the catalog, trying again", exc_info=True)
            again_ms = self._timers.now_ms + APPLY_MS
            self._timers.schedule_if_absent(_APPLY_TIMER, again_ms, self._apply_at)
