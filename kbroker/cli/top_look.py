"""What one look at a broker or cluster finds, by whichever way: numbers as they are then."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(slots=True)
class TopicLook:
    partitions: int = 0
    records: float | None = None
    """Of all that were ever appended; None: not told."""
    bytes_in: float | None = None
    bytes_out: float | None = None
    log_bytes: float | None = None


@dataclass(slots=True)
class GroupLook:
    type: str | None = None
    state: str | None = None
    members: int | None = None
    lag: float | None = None
    lag_seconds: float | None = None
    position: float = 0
    """The sum of what it has committed, or of its start offsets."""


@dataclass(slots=True)
class ApiLook:
    """Requests of one API."""

    count: float = 0
    errors: float = 0
    seconds: float = 0
    buckets: dict[float, float] = field(default_factory=dict)
    """Upper bound in seconds → how many took no longer."""


@dataclass(slots=True)
class ProcessLook:
    memory_bytes: float | None = None
    cpu_seconds: float | None = None
    started: float | None = None
    """In seconds since 1970."""
    open_files: float | None = None
    most_files: float | None = None
    connections: float | None = None


@dataclass(slots=True)
class Look:
    at: float
    """On a clock that never goes back."""
    source: str
    """kafka or metrics"""
    cluster_id: str | None
    brokers: list[dict[str, Any]]
    topics: dict[str, TopicLook] = field(default_factory=dict)
    groups: dict[str, GroupLook] = field(default_factory=dict)
    apis: dict[str, ApiLook] | None = None
    process: ProcessLook = field(default_factory=ProcessLook)
    answer_ms: float | None = None
    """How long the broker took to answer a small request."""
    disk_total_bytes: float | None = None
    disk_usable_bytes: float | None = None
    left_out: int = 0
    """Series that the broker did not tell, for there are too many."""
