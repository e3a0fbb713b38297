"""The settings of consumer groups: Kafka's group.consumer.*, and consumer.* of a group's own configs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

from kbroker.coordinators.groups.assignors import ASSIGNORS


class MigrationPolicy(Enum):
    """group.consumer.migration.policy: which conversions a group makes without a stop."""

    BIDIRECTIONAL = "bidirectional"
    UPGRADE = "upgrade"
    DOWNGRADE = "downgrade"
    DISABLED = "disabled"

    @property
    def allows_upgrade(self) -> bool:
        return self in (MigrationPolicy.BIDIRECTIONAL, MigrationPolicy.UPGRADE)

    @property
    def allows_downgrade(self) -> bool:
        return self in (MigrationPolicy.BIDIRECTIONAL, MigrationPolicy.DOWNGRADE)


@dataclass(frozen=True, slots=True)
class ConsumerGroupSettings:
    session_timeout_ms: int = 45_000
    heartbeat_interval_ms: int = 5_000
    assignment_interval_ms: int | None = None
    """The least time between two computations of the target. None: adaptive, by what a computation costs."""
    max_size: int = 2**31 - 1
    assignors: tuple[str, ...] = tuple(ASSIGNORS)
    """Those that members may name; the first one is for groups whose members name none."""
    migration_policy: MigrationPolicy = MigrationPolicy.BIDIRECTIONAL


SettingsFor = Callable[[str], ConsumerGroupSettings]
"""The settings in force now for a group id."""
