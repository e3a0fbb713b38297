"""The settings of streams groups: Kafka's group.streams.*, and streams.* of a group's own configs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class StreamsGroupSettings:
    session_timeout_ms: int = 45_000
    heartbeat_interval_ms: int = 5_000
    assignment_interval_ms: int | None = None
    """The least time between two computations of the target. None: adaptive, by what a computation costs."""
    initial_rebalance_delay_ms: int | None = None
    """How long the first member of an empty group waits for others. None: adaptive, see initial_delay."""
    max_size: int = 2**31 - 1
    num_standby_replicas: int = 0


SettingsFor = Callable[[str], StreamsGroupSettings]
"""The settings in force now for a group id."""
