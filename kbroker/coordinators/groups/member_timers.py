"""The timers of a consumer group's members: when one fires, its member has been too slow and is fenced."""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum

from kbroker.coordinators.timers import Action, Timers


class MemberTimer(Enum):
    SESSION = "session"
    """No heartbeat."""
    REBALANCE = "rebalance"
    """Partitions not given up."""
    JOIN = "join"
    """A classic member has been told to join again, and has not."""
    SYNC = "sync"
    """A classic member has joined, and has not asked for its assignment."""


class MemberTimers:
    __slots__ = ("_group_id", "_timers")

    def __init__(self, timers: Timers, group_id: str) -> None:
        self._timers = timers
        self._group_id = group_id

    def schedule(self, kind: MemberTimer, member_id: str, deadline_ms: int, action: Action) -> None:
        self._timers.schedule((kind, self._group_id, member_id), deadline_ms, action)

    def schedule_if_absent(self, kind: MemberTimer, member_id: str, deadline_ms: int, action: Action) -> None:
        self._timers.schedule_if_absent((kind, self._group_id, member_id), deadline_ms, action)

    def cancel(self, kind: MemberTimer, member_id: str) -> None:
        self._timers.cancel((kind, self._group_id, member_id))

    def cancel_all(self, member_ids: Iterable[str]) -> None:
        for member_id in member_ids:
            for kind in MemberTimer:
                self.cancel(kind, member_id)
