"""The offset that belongs to a timestamp, or to one of the special ones, as ListOffsets numbers them.

Without tiered storage EARLIEST_LOCAL is EARLIEST, and LATEST_TIERED and EARLIEST_PENDING_UPLOAD find nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kbroker.pending import mapped
from kbroker.storage.interface import TimestampOffset
from kbroker.topics import leader_epochs

if TYPE_CHECKING:
    from kbroker.pending import Pending
    from kbroker.storage.interface import Log

LATEST, EARLIEST, MAX_TIMESTAMP, EARLIEST_LOCAL, LATEST_TIERED, EARLIEST_PENDING_UPLOAD = range(-1, -7, -1)

Found = TimestampOffset | None


def visible_end(log: Log, *, committed: bool) -> int:
    """The offset below which a reader may see."""
    return log.last_stable_offset if committed else log.high_watermark


def find_offset(log: Log, timestamp: int, end_offset: int) -> Found | Pending[Found]:
    """The first record at or after a timestamp, below the end; None: there is none. The log is refreshed."""
    if timestamp == LATEST:
        return TimestampOffset(-1, end_offset, log.leader_epoch)
    if timestamp in (EARLIEST, EARLIEST_LOCAL):
        return TimestampOffset(-1, log.log_start_offset, leader_epochs.at_log_start(log))
    if timestamp in (LATEST_TIERED, EARLIEST_PENDING_UPLOAD):
        return None
    found = log.max_timestamp_offset() if timestamp == MAX_TIMESTAMP else log.offset_for_timestamp(timestamp)
    return mapped(found, lambda found: None if found is None or found.offset >= end_offset else found)
