"""A segment: the batches of a log from one base offset to the next. What all kinds of segments share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

from kbroker.storage.config import LogConfig
from kbroker.storage.partition.transaction_index import AbortedEntry

MAX_RELATIVE_OFFSET = 2**31 - 1


class Segment(ABC):
    __slots__ = (
        "base_offset",
        "created_ms",
        "first_timestamp",
        "max_timestamp",
        "max_timestamp_offset",
        "roll_jitter_ms",
        "size_bytes",
    )

    def __init__(self, base_offset: int, created_ms: int, roll_jitter_ms: int = 0) -> None:
        self.base_offset = base_offset
        self.created_ms = created_ms
        self.roll_jitter_ms = roll_jitter_ms
        self.size_bytes = 0
        self.first_timestamp = -1  # the largest of the first batch
        self.max_timestamp = -1
        self.max_timestamp_offset = base_offset  # the last offset of the batch with max_timestamp

    def must_roll(
        self, last_offset: int, timestamp: int, now_ms: int, config: LogConfig, batches: int = 1
    ) -> bool:
        """Whether a batch, or so many, up to `last_offset` belong into a new segment (their size apart)."""
        if last_offset - self.base_offset > MAX_RELATIVE_OFFSET:
            return True
        if not self.size_bytes:
            return False
        first = self.first_timestamp
        waited_ms = timestamp - first if first >= 0 else now_ms - self.created_ms
        return waited_ms > config.max_segment_ms - self.roll_jitter_ms or self.indexes_full(config, batches)

    def rolling_timestamp(self) -> int:
        """The largest timestamp of the first batch: what segment.ms and max.compaction.lag.ms count from."""
        return self.first_timestamp

    def largest_timestamp(self) -> int:
        """What retention.ms counts from; without timestamps, the time of the last change."""
        return self.max_timestamp if self.max_timestamp >= 0 else self.last_modified_ms()

    @abstractmethod
    def append(self, batch: memoryview, size: int, last_offset: int, timestamp: int) -> None: ...

    @abstractmethod
    def append_run(
        self, batches: Sequence[memoryview], last_offsets: Sequence[int], timestamps: Sequence[int]
    ) -> None:
        """Batches that follow each other: all of them, or none if it fails."""

    @abstractmethod
    def indexes_full(self, config: LogConfig, batches: int) -> bool:
        """Whether the indexes may not have room for so many batches more."""

    @abstractmethod
    def last_modified_ms(self) -> int: ...

    @abstractmethod
    def aborted(self) -> Sequence[AbortedEntry]: ...

    @abstractmethod
    def add_aborted(self, entry: AbortedEntry) -> None: ...
