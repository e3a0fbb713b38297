"""What every group is given: settings, timers, the store, a view of the topics, fresh ids. No clock."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Protocol

from kbroker.coordinators.groups.store import GroupStore
from kbroker.coordinators.timers import Timers


class TopicView(Protocol):
    """What the group coordinator needs to know about topics."""

    def partition_count(self, name: str) -> int | None: ...

    def topic_id(self, name: str) -> bytes | None: ...

    def topic_name(self, topic_id: bytes) -> str | None: ...

    def names(self) -> Iterable[str]: ...


@dataclass(frozen=True, slots=True)
class GroupSettings:
    """Kafka's broker configs of the same names, dots for underscores."""

    group_min_session_timeout_ms: int = 6_000
    group_max_session_timeout_ms: int = 1_800_000
    group_max_size: int = 2**31 - 1
    group_initial_rebalance_delay_ms: int | None = None
    """None: adaptive. The first generation starts when nobody has joined for a moment, see classic_group."""
    offset_metadata_max_bytes: int = 4096
    offsets_retention_minutes: int = 10_080
    offsets_retention_check_interval_ms: int = 600_000


@dataclass(slots=True)
class GroupEnvironment:
    store: GroupStore
    topics: TopicView
    new_id: Callable[[], str]
    """A fresh UUID as text."""
    settings: GroupSettings = field(default_factory=GroupSettings)
    timers: Timers = field(default_factory=Timers)
    soon: Callable[[Callable[[], None]], None] = lambda callback: callback()
    """Calls back when all requests that are at hand have been looked at."""
    rebalances: Counter[str] = field(default_factory=Counter)
    """How many generations or epochs groups began, by the type of the group."""
