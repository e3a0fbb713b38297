"""The settings of share groups: Kafka's group.share.*, and share.* of a group's own configs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ShareSettings:
    """What the partitions of a share group obey. A change counts from the next step on."""

    record_lock_duration_ms: int = 30_000
    delivery_count_limit: int = 5
    partition_max_record_locks: int = 2_000
    isolation_level: str = "read_uncommitted"
    auto_offset_reset: str = "latest"
    """latest, earliest, or by_duration: with an ISO 8601 duration."""
    renew_acknowledge_enable: bool = True
    retry_backoff_ms: int = 0
    """How long a record that was released is not given again; 0: it may be at once, as in Kafka."""
    retry_backoff_multiplier: float = 2.0
    """By how much that grows with each delivery after the first."""
    retry_backoff_max_ms: int = 0
    """Where it ends; 0: nowhere."""
    dead_letter_topic: str = ""
    """Where records go that were rejected or delivered too often; empty: nowhere. It may have {group} and
    {topic} in it."""
    dead_letter_copy_record: bool = False
    """Whether they go there whole, or only what tells of them."""

    @property
    def reads_committed(self) -> bool:
        return self.isolation_level == "read_committed"


SettingsFor = Callable[[str], ShareSettings]
"""The settings in force now for a group id."""
