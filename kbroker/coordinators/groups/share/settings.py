"""The settings of share groups' membership: Kafka's group.share.*, and share.* of a group's own configs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ShareGroupSettings:
    session_timeout_ms: int = 45_000
    heartbeat_interval_ms: int = 5_000
    assignment_interval_ms: int | None = None
    """The least time between two computations of the target. None: adaptive, by what a computation costs."""
    max_size: int = 200


SettingsFor = Callable[[str], ShareGroupSettings]
"""The settings in force now for a group id."""
