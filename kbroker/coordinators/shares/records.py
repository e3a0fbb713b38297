"""What is said of records of a share partition: by its members, of the log, and back to the members."""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum
from typing import NamedTuple


class AcknowledgeType(IntEnum):
    GAP = 0
    ACCEPT = 1
    RELEASE = 2
    REJECT = 3
    RENEW = 4


class AcquireMode(IntEnum):
    BATCH_OPTIMIZED = 0
    RECORD_LIMIT = 1


class Acknowledgement(NamedTuple):
    """One type for all records of the range, or one for each."""

    first_offset: int
    last_offset: int
    types: Sequence[int]


class Acquired(NamedTuple):
    first_offset: int
    last_offset: int
    delivery_count: int


class LogBatch(NamedTuple):
    """The offsets that a batch of the log covers."""

    first_offset: int
    last_offset: int


class Dead(NamedTuple):
    """Archived records that somebody gave up: no gaps, no aborted ones, none that the log has lost."""

    first_offset: int
    last_offset: int
    delivery_count: int
    reason: str
    """`reject`: a member rejected them. `limit`: they were delivered as often as may be."""


class InvalidAcknowledgement(Exception):
    """INVALID_REQUEST."""


class InvalidRecordState(Exception):
    """INVALID_RECORD_STATE."""
