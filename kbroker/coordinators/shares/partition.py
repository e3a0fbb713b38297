"""A share partition: which records of one partition are in flight in one share group, and with whom.

Sans-IO: time comes in, and what is to be stored goes out. The steps of a record:

    available    → acquired      acquire; its delivery count grows by one
    acquired     → acknowledged  accept
                 → archived      reject, or gap
                 → available     release, lock timeout, session end
                 → archived      the same, once its delivery count has reached the limit
    released     → available     when its retry back-off is over, where the group has one

A change of state waits for the store: the records are *settling*, in nobody's hands, until `settle` tells
whether it is stored (and then holds) or not (and then the records are acquired as before, or, if their lock
has run out meanwhile, available).

Invariants:
- A record is acquired by one member at a time. Delivery counts do not fall.
- The start offset does not go back and does not pass a record that is not terminal.
- A step that raises has changed nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import IntEnum
from typing import NamedTuple

from kbroker.coordinators.shares.settings import ShareSettings
from kbroker.coordinators.shares.state import ShareState, ShareStateChange


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


class InvalidAcknowledgement(Exception):
    """INVALID_REQUEST."""


class InvalidRecordState(Exception):
    """INVALID_RECORD_STATE."""


class Change:
    """Records that are settling. `state`: what is to be stored; None: nothing, it holds already."""

    __slots__ = ("state",)

    def __init__(self, state: ShareStateChange | None) -> None:
        self.state = state


class SharePartition:
    def __init__(self, stored: ShareState, settings: Callable[[], ShareSettings]) -> None:
        """`stored`: with a start offset that is decided."""
        self.on_available: Callable[[], None] | None = None
        """Called when records have become available, or room has: those who wait look again."""
        raise NotImplementedError

    @property
    def start_offset(self) -> int:
        raise NotImplementedError

    @property
    def end_offset(self) -> int:
        """The last offset in flight; one below the start offset: none is."""
        raise NotImplementedError

    def state(self) -> ShareState:
        """All of it as it is to be stored."""
        raise NotImplementedError

    def next_fetch_offset(self) -> int | None:
        """Where to read the log for what could be acquired; None: nothing, as many are in flight as may."""
        raise NotImplementedError

    def acquire(
        self,
        member_id: str,
        batches: Sequence[LogBatch],
        *,
        max_records: int,
        batch_size: int,
        mode: AcquireMode,
        aborted: Sequence[tuple[int, int]] = (),
        now_ms: int,
    ) -> tuple[list[Acquired], Change | None]:
        """Give the member records of these batches, which were read at `next_fetch_offset`.

        `aborted`: ranges of records of aborted transactions, which are archived and not given. The Change, if
        any, is of those and of records that the log has no more; nobody need wait for it.
        """
        raise NotImplementedError

    def acknowledge(
        self, member_id: str, acknowledgements: Sequence[Acknowledgement], now_ms: int
    ) -> Change | None:
        """All or nothing. None: there was nothing to change.

        Raises InvalidAcknowledgement, InvalidRecordState.
        """
        raise NotImplementedError

    def release(self, member_id: str, now_ms: int) -> Change | None:
        """All that the member holds: its session has ended."""
        raise NotImplementedError

    def expire(self, now_ms: int) -> Change | None:
        """Locks that have run out, and back-offs."""
        raise NotImplementedError

    def next_deadline(self) -> int | None:
        """When to call `expire` next."""
        raise NotImplementedError

    def log_start_moved(self, log_start_offset: int, now_ms: int) -> Change | None:
        """Nothing below this offset is there any more."""
        raise NotImplementedError

    def settle(self, change: Change, *, stored: bool, now_ms: int) -> None:
        raise NotImplementedError
