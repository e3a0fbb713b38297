"""What may be set of one consumer, by the names that Kafka's consumers have for it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

IDLE_MS = 300_000


class OffsetReset(Enum):
    """auto.offset.reset: where to begin without a committed offset, or with one that the log has no more."""

    EARLIEST = "earliest"
    LATEST = "latest"
    NONE = "none"


@dataclass(frozen=True, slots=True)
class ConsumerSettings:
    auto_offset_reset: OffsetReset = OffsetReset.LATEST
    auto_commit: bool = True
    """Whether what a poll delivered is committed by later calls: the next poll says that it is done."""
    auto_commit_interval_ms: int = 5_000
    read_committed: bool = False
    fetch_min_bytes: int = 1
    rebalance_timeout_ms: int = 300_000
    """max.poll.interval.ms: how long the group waits for partitions that this consumer is to give up."""
    idle_ms: int | None = IDLE_MS
    """How long its user may be silent. None: it lives until it is closed."""
    client_id: str = ""
    client_host: str = ""
