"""Which part of a log may be compacted now, and whether it is worth it. Kafka's rules.

From the first dirty offset (where the last compaction ended) up to the first segment that is active, holds
an offset at or above the last stable offset, or is younger than min.compaction.lag.ms. It is worth it where
the dirty part is a larger share than min.cleanable.dirty.ratio, or older than max.compaction.lag.ms.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from kbroker.storage.config import MAX_LONG, LogConfig

if TYPE_CHECKING:
    from kbroker.storage.segments.segment import Segment


class Cleanable(NamedTuple):
    overdue: bool  # beyond max.compaction.lag.ms
    ratio: float  # of bytes that are dirty; so that the largest of several is the one to compact first
    first_dirty_offset: int
    first_uncleanable_offset: int


def first_dirty_offset(checkpoint: int | None, log_start_offset: int, log_end_offset: int) -> int:
    """Where the last compaction ended, if the log still reaches there."""
    if checkpoint is None or not log_start_offset <= checkpoint <= log_end_offset:
        return log_start_offset
    return checkpoint


def find_cleanable(
    segments: Sequence[Segment],
    config: LogConfig,
    first_dirty: int,
    last_stable_offset: int,
    now_ms: int,
) -> Cleanable | None:
    """None: nothing to do. `segments`: all of a log, the active one last."""
    if len(segments) < 2:
        return None
    ended = segments[:-1]
    bases = [segment.base_offset for segment in segments]
    dirty = [segment for segment, end in zip(ended, bases[1:], strict=True) if end > first_dirty]
    limit = last_stable_offset
    if config.min_compaction_lag_ms > 0:
        youngest = now_ms - config.min_compaction_lag_ms
        limit = min(
            [limit, *(segment.base_offset for segment in dirty if segment.largest_timestamp() > youngest)]
        )
    # All of the segment with the limit stays as it is.
    first_uncleanable = max((base for base in bases if base <= limit), default=bases[0])
    clean_bytes = sum(segment.size_bytes for segment in ended if segment.base_offset < first_dirty)
    dirty_bytes = sum(segment.size_bytes for segment in dirty if segment.base_offset < first_uncleanable)
    if not dirty_bytes:
        return None
    overdue = config.max_compaction_lag_ms < MAX_LONG and (
        _oldest_timestamp(dirty) < now_ms - config.max_compaction_lag_ms
    )
    ratio = dirty_bytes / (clean_bytes + dirty_bytes)
    if not overdue and ratio <= config.min_cleanable_dirty_ratio:
        return None
    return Cleanable(overdue, ratio, first_dirty, first_uncleanable)


def _oldest_timestamp(segments: Sequence[Segment]) -> float:
    known = [timestamp for segment in segments if (timestamp := segment.rolling_timestamp()) > 0]
    return min(known, default=float("inf"))
