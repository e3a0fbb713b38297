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
has run out meanwhile, available; those at the limit are archived by a later `expire`).

Invariants:
- A record is acquired by one member at a time. Delivery counts do not fall.
- The start offset does not go back and does not pass a record that is not terminal, by what is stored.
- A step that raises has changed nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from kbroker.coordinators.shares.acknowledging import Plan, Step
from kbroker.coordinators.shares.acquisition import Acquisition
from kbroker.coordinators.shares.changes import Cause, Change, Move, begin, stored_as
from kbroker.coordinators.shares.leases import Lease, Leases
from kbroker.coordinators.shares.records import (
    Acknowledgement,
    AcknowledgeType,
    Acquired,
    AcquireMode,
    Dead,
    InvalidAcknowledgement,
    InvalidRecordState,
    LogBatch,
)
from kbroker.coordinators.shares.settings import ShareSettings
from kbroker.coordinators.shares.state import Run, ShareState, ShareStateChange
from kbroker.coordinators.shares.window import (
    ACQUIRED,
    ARCHIVED,
    AVAILABLE,
    BACKING_OFF,
    SETTLING,
    InFlightBatch,
    Status,
    Window,
    plain,
)

__all__ = [
    "AcknowledgeType",
    "Acknowledgement",
    "AcquireMode",
    "Acquired",
    "Change",
    "Dead",
    "InvalidAcknowledgement",
    "InvalidRecordState",
    "LogBatch",
    "SharePartition",
]

_RETRY_MS = 1_000
"""When to archive again what could not be stored."""


class SharePartition:
    def __init__(self, stored: ShareState, settings: Callable[[], ShareSettings]) -> None:
        """`stored`: with a start offset that is decided."""
        self.on_available: Callable[[], None] | None = None
        """Called when records have become available, or room has: those who wait look again."""
        self._settings = settings
        self._leases = Leases()
        self._window = Window(stored.start_offset)
        for first, last, state, count in stored.runs:
            self._window.add(InFlightBatch(first, last, plain(int(state), count)))
        self._window.advance()

    @property
    def start_offset(self) -> int:
        return self._window.start_offset

    @property
    def end_offset(self) -> int:
        """The last offset in flight; one below the start offset: none is."""
        return self._window.end_offset

    @property
    def in_flight(self) -> int:
        """Records from the start offset to the last that was ever given, whatever they are now."""
        return self._window.size

    @property
    def acquired(self) -> int:
        """Records that members hold."""
        return self._leases.held

    def state(self) -> ShareState:
        """All of it as it is to be stored."""
        start_offset = self._window.start_offset
        runs: list[Run] = []
        for first, last, status in self._window.segments(start_offset, self._window.end_offset):
            state, count = stored_as(status), status.count
            if not status.terminal:
                if status.state in (ACQUIRED, SETTLING) and status.lease is not None:
                    count -= 1
                if not count:
                    continue
            previous = runs[-1] if runs else None
            if previous is not None and previous[1:] == (first - 1, state, count):
                runs[-1] = Run(previous[0], last, state, count)
            else:
                runs.append(Run(first, last, state, count))
        return ShareState(start_offset, runs)

    def leases_of(self, member_id: str) -> Sequence[Lease]:
        """Those by which the member holds records now."""
        return self._leases.of(member_id)

    def first_open_offset(self) -> int:
        """The first that is available, or not in flight yet, be there room for it or not."""
        return self._window.next_open()

    def next_fetch_offset(self) -> int | None:
        """Where to read the log for what could be acquired; None: nothing, as many are in flight as may."""
        window = self._window
        offset = window.next_open()
        return None if offset > window.end_offset and self._is_full() else offset

    def acquire(
        self,
        member_id: str,
        batches: Sequence[LogBatch],
        *,
        fetch_offset: int,
        max_records: int,
        batch_size: int,
        mode: AcquireMode,
        aborted: Sequence[tuple[int, int]] = (),
        now_ms: int,
    ) -> tuple[list[Acquired], Change | None]:
        """Give the member records of these batches, which the log has at `fetch_offset` and behind it.

        `aborted`: ranges of records of aborted transactions, in order, which are archived and not given. The
        Change, if any, is of those and of records that the log has no more; nobody need wait for it. Nothing
        acquired, and a Change: there may be more to acquire behind that.
        """
        window = self._window
        if max_records <= 0 or not batches:
            return [], None
        settings = self._settings()
        last = batches[-1].last_offset
        limit = min(max_records, settings.partition_max_record_locks - window.size)
        if limit <= 0:
            # No room behind the end, but something to give before it.
            last = min(last, window.end_offset)
            limit = max_records
        base = batches[0].first_offset
        steps = self._missing(max(fetch_offset, window.start_offset), base - 1) if base > fetch_offset else []
        lease = Lease(member_id, now_ms + settings.record_lock_duration_ms)
        acquisition = Acquisition(
            window,
            lease,
            batches,
            limit=limit,
            batch_size=batch_size,
            strictly=mode == AcquireMode.RECORD_LIMIT,
            delivery_count_limit=settings.delivery_count_limit,
        )
        acquisition.take(max(base, window.start_offset), last)
        acquired = acquisition.acquired
        if acquired and aborted:
            acquired, undone = _without(acquired, aborted)
            for first, last, count in undone:
                steps.append((first, last, plain(AVAILABLE, count - 1), plain(ARCHIVED, count - 1)))
        if acquired:
            self._leases.add(lease)
        return acquired, begin(window, steps, ()) if steps else None

    def acknowledge(
        self, member_id: str, acknowledgements: Sequence[Acknowledgement], now_ms: int
    ) -> Change | None:
        """All or nothing. None: there was nothing to change. Their form is checked (`check_form`).

        Raises InvalidAcknowledgement, InvalidRecordState.
        """
        settings = self._settings()
        plan = Plan(self._window, member_id, settings, now_ms)
        for each in acknowledgements:
            plan.acknowledge(each)
        if plan.renewed:
            self._renew(plan.renewed, Lease(member_id, now_ms + settings.record_lock_duration_ms))
        return self._begin(plan)

    def release(self, leases: Sequence[Lease], now_ms: int) -> Change | None:
        """All that is held by these: the session of their member has ended."""
        return self._give_back(leases, now_ms, Cause.SESSION_ENDED)

    def expire(self, now_ms: int) -> Change | None:
        """Locks that have run out, and back-offs."""
        run_out = self._leases.run_out(now_ms)
        if not run_out:
            return None
        available = False
        for lease in run_out:
            if lease.member_id is None:
                available |= self._end_back_off(lease)
        change = self._give_back(run_out, now_ms, Cause.LOCK_RUN_OUT)
        if available:
            self._tell_available()
        return change

    def next_deadline(self) -> int | None:
        """When to call `expire` next."""
        return self._leases.next_deadline()

    def log_start_moved(self, log_start_offset: int, now_ms: int) -> Change | None:
        """Nothing below this offset is there any more."""
        window = self._window
        if log_start_offset <= window.start_offset:
            return None
        was_full = self._is_full()
        window.begin_at(log_start_offset)
        if was_full and not self._is_full():
            self._tell_available()
        return Change(ShareStateChange(window.start_offset))

    def settle(self, change: Change, *, stored: bool, now_ms: int) -> None:
        window = self._window
        size = window.size
        available = False
        back_offs: dict[Lease, None] = {}
        for move in change.moves:
            status = move.after if stored else self._undone(move, now_ms)
            lease = status.lease
            if status.state == BACKING_OFF and lease is not None:
                if lease.deadline_ms <= now_ms:
                    status = plain(AVAILABLE, status.count)
                else:
                    back_offs[lease] = None
            window.replace(move.first, move.last, move.settling, status)
            available |= status.state == AVAILABLE
        for lease in back_offs:
            self._leases.add(lease)
        if window.advance() and not available:
            available = size >= self._settings().partition_max_record_locks > window.size
        if available:
            self._tell_available()

    # internals

    def _is_full(self) -> bool:
        return self._window.size >= self._settings().partition_max_record_locks

    def _tell_available(self) -> None:
        if self.on_available is not None:
            self.on_available()

    def _missing(self, first: int, last: int) -> list[Step]:
        """The log has none of these offsets: nobody need look there again."""
        window = self._window
        steps: list[Step] = [
            (begin, end, status, plain(ARCHIVED, status.count))
            for begin, end, status in window.segments(first, last)
            if status.state == AVAILABLE
        ]
        for hole in window.holes(first, last):
            window.add(InFlightBatch(*hole, plain(ARCHIVED, 0)))
        window.advance()
        return steps

    def _renew(self, renewed: Sequence[tuple[int, int, Status]], lease: Lease) -> None:
        for first, last, status in renewed:
            self._window.put(first, last, Status(ACQUIRED, status.count, lease))
            lease.ranges.append((first, last))
        self._leases.add(lease)

    def _give_back(self, leases: Sequence[Lease], now_ms: int, cause: Cause) -> Change | None:
        plan = Plan(self._window, None, self._settings(), now_ms)
        for lease in leases:
            for first_held, last_held in lease.ranges:
                for first, last, status in self._window.segments(first_held, last_held):
                    if status.lease is lease and status.state == ACQUIRED:
                        plan.give_back(first, last, status)
        plan.steps.sort(key=lambda step: step[0])
        change = self._begin(plan)
        if change is not None:
            change.cause = cause
        return change

    def _begin(self, plan: Plan) -> Change | None:
        return begin(self._window, plan.steps, plan.dead) if plan.steps else None

    def _end_back_off(self, lease: Lease) -> bool:
        window = self._window
        found = False
        for first_held, last_held in lease.ranges:
            for first, last, status in window.segments(first_held, last_held):
                if status.lease is lease and status.state == BACKING_OFF:
                    window.put(first, last, plain(AVAILABLE, status.count))
                    found = True
        return found

    def _undone(self, move: Move, now_ms: int) -> Status:
        """What records are after a change that could not be stored."""
        before = move.before
        if before.lease is None or not (before.lease.is_over or before.lease.deadline_ms <= now_ms):
            return before
        if before.count < self._settings().delivery_count_limit:
            return plain(AVAILABLE, before.count)
        # They must not be given again, and that they are archived is not stored: try again.
        lease = Lease("", now_ms + _RETRY_MS)
        lease.ranges.append((move.first, move.last))
        self._leases.add(lease)
        return Status(ACQUIRED, before.count, lease)


def _without(
    acquired: Sequence[Acquired], aborted: Sequence[tuple[int, int]]
) -> tuple[list[Acquired], list[Acquired]]:
    """What of the acquired records is not aborted, and what is."""
    kept: list[Acquired] = []
    undone: list[Acquired] = []
    for first, last, count in acquired:
        for aborted_first, aborted_last in aborted:
            if aborted_last < first or aborted_first > last:
                continue
            if aborted_first > first:
                kept.append(Acquired(first, aborted_first - 1, count))
            undone.append(Acquired(max(first, aborted_first), min(last, aborted_last), count))
            first = aborted_last + 1
        if first <= last:
            kept.append(Acquired(first, last, count))
    return kept, undone
