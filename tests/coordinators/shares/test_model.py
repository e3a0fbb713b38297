"""A share partition against a dictionary of its records, in any order of what can happen to it.

The model does not say which records a member gets, only that it may have them. Everything else it says
exactly: what is available, what an acknowledgement does or why it is refused, what runs out when, what a
crash leaves.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from kbroker.coordinators.shares.acknowledging import check_form
from kbroker.coordinators.shares.partition import (
    Acknowledgement,
    AcquireMode,
    Change,
    InvalidAcknowledgement,
    InvalidRecordState,
    LogBatch,
    SharePartition,
)
from kbroker.coordinators.shares.settings import ShareSettings
from kbroker.coordinators.shares.state import RecordState, ShareState, merged
from tests.coordinators.shares.driver import ACCEPT, GAP, REJECT, RELEASE, RENEW

MEMBERS = ("a", "b", "c")
NOBODY = ""
RETRY_MS = 1_000
LOCK_MS = 1_000
MOST_OFFSETS = 90


@dataclass(frozen=True)
class Record:
    state: str = "available"  # acquired, settling, backing off, done
    count: int = 0
    member: str | None = None
    deadline_ms: int | None = None
    stored: bool = True  # of what is done: after a restart, too


NEW = Record()


@dataclass(eq=False)
class Settling:
    """A change on its way to the store: by offset, what the record was and what it will be."""

    change: Change
    before: dict[int, Record] = field(default_factory=dict)
    after: dict[int, Record] = field(default_factory=dict)


class SharePartitionMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.settings = ShareSettings(record_lock_duration_ms=LOCK_MS, partition_max_record_locks=20)
        self.now_ms = 0
        self.log: list[LogBatch] = []
        self.aborted: set[LogBatch] = set()
        self.log_start = 0
        self.log_end = 0
        self.records: dict[int, Record] = {}
        self.settling: list[Settling] = []
        self.stored = ShareState(0)
        self.counts: dict[int, int] = {}  # of what is known to be stored
        self.woken = False
        self.start_offset = 0
        self.open_partition()

    def open_partition(self) -> None:
        self.partition = SharePartition(self.stored, lambda: self.settings)
        self.partition.on_available = self.wake

    def wake(self) -> None:
        # Who waits looks again at once.
        self.partition.next_fetch_offset()
        self.woken = True

    def record(self, offset: int) -> Record:
        return self.records.get(offset, NEW)

    # the log

    @initialize(sizes=st.lists(st.integers(1, 9), min_size=2, max_size=6))
    def begin_log(self, sizes: list[int]) -> None:
        for size in sizes:
            self.add_batch(0, size, False)

    @precondition(lambda self: self.log_end < MOST_OFFSETS)
    @rule(
        missing=st.sampled_from([0, 0, 0, 1, 4]), size=st.integers(1, 9), aborted=st.sampled_from([0, 0, 1])
    )
    def append(self, missing: int, size: int, aborted: int) -> None:
        self.add_batch(missing, size, bool(aborted))

    def add_batch(self, missing: int, size: int, aborted: bool) -> None:
        batch = LogBatch(self.log_end + missing, self.log_end + missing + size - 1)
        self.log.append(batch)
        if aborted:
            self.aborted.add(batch)
        self.log_end = batch.last_offset + 1

    @precondition(lambda self: len(self.log) > 1)
    @rule(data=st.data(), goes=st.sampled_from([False, False, False, True]))
    def compact(self, data: st.DataObject, goes: bool) -> None:
        """A batch goes, but not the last one."""
        if goes:
            self.log.remove(data.draw(st.sampled_from(self.log[:-1])))

    @rule(by=st.sampled_from([0, 0, 0, 0, 0, 1, 2, 5]))
    def move_log_start(self, by: int) -> None:
        self.log_start = min(self.log_start + by, self.log_end)
        self.log = [batch for batch in self.log if batch.last_offset >= self.log_start]
        self.tell_log_start()

    def tell_log_start(self) -> None:
        change = self.partition.log_start_moved(self.log_start, self.now_ms)
        if change is None:
            return
        self.end_below(self.log_start)
        if change.state is not None:
            self.stored = merged(self.stored, [change.state])

    def end_below(self, offset: int) -> None:
        for below in range(offset):
            record = self.record(below)
            if record.state != "done":
                self.records[below] = Record("done", record.count, stored=False)
                for each in self.settling:
                    each.before.pop(below, None)
                    each.after.pop(below, None)

    # members

    @rule(
        member=st.sampled_from(MEMBERS),
        max_records=st.integers(1, 15),
        batch_size=st.integers(1, 12),
        batches=st.integers(1, 6),
    )
    def fetch_batches(self, member: str, max_records: int, batch_size: int, batches: int) -> None:
        self.fetch(member, max_records, batch_size, AcquireMode.BATCH_OPTIMIZED, batches)

    @rule(member=st.sampled_from(MEMBERS), max_records=st.integers(0, 9), batches=st.integers(1, 6))
    def fetch_records(self, member: str, max_records: int, batches: int) -> None:
        self.fetch(member, max_records, 500, AcquireMode.RECORD_LIMIT, batches)

    @rule(member=st.sampled_from(MEMBERS))
    def fetch_much(self, member: str) -> None:
        self.fetch(member, 500, 500, AcquireMode.BATCH_OPTIMIZED, 9)

    def fetch(
        self, member: str, max_records: int, batch_size: int, mode: AcquireMode, batches: int
    ) -> list[int]:
        offset = self.partition.next_fetch_offset()
        if offset is None or offset >= self.log_end:
            return []
        if offset < self.log_start:
            self.tell_log_start()
            return []
        read = [batch for batch in self.log if batch.last_offset >= offset][:batches]
        aborted = [tuple(batch) for batch in read if batch in self.aborted]
        acquired, change = self.partition.acquire(
            member,
            read,
            fetch_offset=offset,
            max_records=max_records,
            batch_size=batch_size,
            mode=mode,
            aborted=aborted,
            now_ms=self.now_ms,
        )
        missing = range(max(offset, self.start_offset), read[0].first_offset) if max_records else range(0)
        settling = Settling(change) if change is not None else None
        archived = _offsets(change)
        for each in archived:
            before = self.record(each)
            assert before.state == "available"
            assert each in missing or any(first <= each <= last for first, last in aborted)
            self.begin(settling, each, before, replace(before, state="done"))
        for each in missing:
            if self.record(each) == NEW:
                self.records[each] = Record("done", stored=False)
            assert self.record(each).state != "available"
        given = []
        for first, last, count in acquired:
            for each in range(first, last + 1):
                before = self.record(each)
                assert before.state == "available", "it is in somebody's hands, or not to be had"
                assert count == before.count + 1
                assert not any(low <= each <= high for low, high in aborted)
                self.records[each] = Record("acquired", count, member, self.now_ms + LOCK_MS)
                given.append(each)
        assert given == sorted(given)
        if mode == AcquireMode.RECORD_LIMIT:
            assert len(given) <= max_records
        if max_records:
            assert given or archived or missing, "who fetches gets on"
        if settling is not None:
            self.settling.append(settling)
        return given

    @rule(data=st.data(), member=st.sampled_from(MEMBERS), shift=st.sampled_from([0, 0, 0, 0, -2, 1, 3]))
    def acknowledge(self, data: st.DataObject, member: str, shift: int) -> None:
        """Mostly what the member holds."""
        held = [offset for offset, record in self.records.items() if record.member == member]
        firsts = st.sampled_from(sorted(held)) if held else st.integers(0, MOST_OFFSETS)
        acknowledgements = []
        for first in sorted(data.draw(st.lists(firsts, min_size=1, max_size=3, unique=True))):
            last = first
            most = data.draw(st.integers(0, 8))
            while last - first < most and last + 1 in held:
                last += 1
            last = max(last + shift, 0)
            number = last - first + 1 if data.draw(st.booleans()) else 1
            kinds = st.sampled_from([ACCEPT, ACCEPT, RELEASE, RELEASE, REJECT, GAP, RENEW])
            types = data.draw(st.lists(kinds, min_size=max(number, 1), max_size=max(number, 1)))
            acknowledgements.append(Acknowledgement(first, last, types))
        expected = self.expected_refusal(member, acknowledgements)
        refusal: type[Exception] | None = None
        change = None
        try:
            check_form(acknowledgements)
            change = self.partition.acknowledge(member, acknowledgements, self.now_ms)
        except (InvalidAcknowledgement, InvalidRecordState) as error:
            refusal = type(error)
        assert refusal in (expected or (None,))
        if refusal is not None:
            return
        settling = Settling(change) if change is not None else None
        given_up: set[tuple[int, str]] = set()
        # Of a renewal and something else, the latter counts.
        kinds = {
            offset: types[offset - first] if len(types) > 1 else types[0]
            for first, last, types in acknowledgements
            for offset in range(max(first, self.start_offset), last + 1)
        }
        for offset, kind in kinds.items():
            self.acknowledged(settling, offset, kind, given_up)
        self.started(settling, given_up)

    def acknowledged(
        self, settling: Settling | None, offset: int, kind: int, given_up: set[tuple[int, str]]
    ) -> None:
        record = self.record(offset)
        if record.state != "acquired":
            assert record == NEW
            return
        if kind == RENEW:
            self.records[offset] = replace(record, deadline_ms=self.now_ms + LOCK_MS)
            return
        at_limit = record.count >= self.settings.delivery_count_limit
        after = Record("done", record.count)
        if kind == RELEASE and not at_limit:
            after = Record("available", record.count)
            if self.settings.retry_backoff_ms:
                after = Record("backing off", record.count, None, self.now_ms + self.back_off(record.count))
        elif kind == RELEASE:
            given_up.add((offset, "limit"))
        elif kind == REJECT:
            given_up.add((offset, "reject"))
        self.begin(settling, offset, record, after)

    def back_off(self, count: int) -> int:
        return min(self.settings.retry_backoff_ms * 2 ** (count - 1), self.settings.retry_backoff_max_ms)

    def expected_refusal(
        self, member: str, acknowledgements: Sequence[Acknowledgement]
    ) -> tuple[type[Exception] | None, ...] | None:
        """None: all is well."""
        previous = -1
        for first, last, types in acknowledgements:
            if first > last or first < previous or len(types) not in (1, last - first + 1):
                return (InvalidAcknowledgement,)
            previous = last
        end = self.partition.end_offset
        unclear = False
        done: dict[int, int] = {}
        for first, last, types in acknowledgements:
            if last < self.start_offset:
                continue
            offsets = range(max(first, self.start_offset), last + 1)
            if any(self.record(offset) == NEW and offset <= end for offset in offsets):
                # Where it begins and ends among holes decides.
                unclear = True
            if end < self.start_offset or (last <= end and any(self.record(at) == NEW for at in offsets)):
                refusal: type[Exception] = InvalidRecordState
            else:
                refusal = InvalidAcknowledgement
            if last > end:
                return (refusal, InvalidRecordState) if unclear else (refusal,)
            for offset in offsets:
                record = self.record(offset)
                mine = record.state == "acquired" and record.member == member
                if (not mine and record != NEW) or done.get(offset, RENEW) != RENEW:
                    return (InvalidRecordState, InvalidAcknowledgement) if unclear else (InvalidRecordState,)
                done[offset] = types[offset - first] if len(types) > 1 else types[0]
        return (None, InvalidRecordState, InvalidAcknowledgement) if unclear else None

    @rule(member=st.sampled_from(MEMBERS), every=st.integers(1, 3))
    def renew(self, member: str, every: int) -> None:
        held = sorted(offset for offset, record in self.records.items() if record.member == member)[::every]
        renewed = [Acknowledgement(offset, offset, [RENEW]) for offset in held]
        assert self.partition.acknowledge(member, renewed, self.now_ms) is None
        for offset in held:
            self.records[offset] = replace(self.record(offset), deadline_ms=self.now_ms + LOCK_MS)

    @precondition(lambda self: any(record.member for record in self.records.values()))
    @rule(member=st.sampled_from(MEMBERS))
    def end_session(self, member: str) -> None:
        change = self.partition.release(self.partition.leases_of(member), self.now_ms)
        self.give_back(
            change,
            [offset for offset, record in self.records.items() if record.member == member],
        )

    # time

    @rule(milliseconds=st.sampled_from([1, 100, 400, LOCK_MS, LOCK_MS]))
    def wait(self, milliseconds: int) -> None:
        self.now_ms += milliseconds
        self.woken = False
        change = self.partition.expire(self.now_ms)
        available = False
        over = []
        for offset, record in self.records.items():
            if record.deadline_ms is None or record.deadline_ms > self.now_ms:
                continue
            if record.state == "backing off":
                self.records[offset] = Record("available", record.count)
                available = True
            elif record.state == "acquired":
                over.append(offset)
            elif record.state == "settling":
                self.records[offset] = replace(record, deadline_ms=None)
        self.give_back(change, over)
        assert self.woken or not available

    def give_back(self, change: Change | None, offsets: list[int]) -> None:
        settling = Settling(change) if change is not None else None
        assert sorted(offsets) == _offsets(change)
        given_up = set()
        for offset in offsets:
            record = self.record(offset)
            at_limit = record.count >= self.settings.delivery_count_limit
            if at_limit:
                given_up.add((offset, "limit"))
            self.begin(settling, offset, record, Record("done" if at_limit else "available", record.count))
        self.started(settling, given_up)

    # the store

    def begin(self, settling: Settling | None, offset: int, before: Record, after: Record) -> None:
        assert settling is not None
        settling.before[offset], settling.after[offset] = before, after
        deadline_ms = before.deadline_ms
        if deadline_ms is not None and deadline_ms <= self.now_ms:
            deadline_ms = None if before.state != "acquired" or self.ran_out(before) else deadline_ms
        self.records[offset] = Record("settling", before.count, None, deadline_ms)

    def ran_out(self, record: Record) -> bool:
        deadline_ms = self.partition.next_deadline()
        return record.deadline_ms is not None and (deadline_ms is None or deadline_ms > record.deadline_ms)

    def started(self, settling: Settling | None, given_up: set[tuple[int, str]]) -> None:
        if settling is None:
            assert not given_up
            return
        change = settling.change
        assert change.state is not None
        written = {
            offset: (run.state, run.delivery_count)
            for run in change.state.runs
            for offset in range(run.first_offset, run.last_offset + 1)
        }
        assert written.keys() == settling.after.keys()
        for offset, (state, count) in written.items():
            assert state.is_terminal == (settling.after[offset].state == "done")
            assert count == settling.after[offset].count
        dead = {
            (offset, each.reason)
            for each in change.dead
            for offset in range(each.first_offset, each.last_offset + 1)
        }
        assert dead == given_up
        self.settling.append(settling)

    @precondition(lambda self: self.settling)
    @rule(data=st.data(), stored=st.sampled_from([True, True, False]))
    def settle(self, data: st.DataObject, stored: bool) -> None:
        settling = data.draw(st.sampled_from(self.settling))
        self.settling.remove(settling)
        if stored:
            self.store(settling)
        self.woken = False
        self.partition.settle(settling.change, stored=stored, now_ms=self.now_ms)
        available = False
        for offset, after in settling.after.items():
            record = after if stored else self.undone(settling.before[offset])
            if record.state == "backing off" and (record.deadline_ms or 0) <= self.now_ms:
                record = Record("available", record.count)
            self.records[offset] = record
            if stored:
                assert after.count >= self.counts.get(offset, 0)
                self.counts[offset] = after.count
            available |= record.state == "available"
        assert self.woken or not available

    def undone(self, before: Record) -> Record:
        if before.deadline_ms is None or before.deadline_ms > self.now_ms:
            return before
        if before.count >= self.settings.delivery_count_limit:
            return Record("acquired", before.count, NOBODY, self.now_ms + RETRY_MS)
        return Record("available", before.count)

    def store(self, settling: Settling) -> None:
        assert settling.change.state is not None
        self.stored = merged(self.stored, [settling.change.state])

    @precondition(lambda self: self.partition.end_offset >= self.partition.start_offset)
    @rule(data=st.data())
    def crash(self, data: st.DataObject) -> None:
        """Of what was on its way, some is stored."""
        for settling in self.settling:
            if data.draw(st.booleans()):
                self.store(settling)
        self.settling = []
        before, self.records = self.records, {}
        counts = {
            offset: run for run in self.stored.runs for offset in range(run.first_offset, run.last_offset + 1)
        }
        for offset in range(self.stored.start_offset):
            self.records[offset] = Record("done", before.get(offset, NEW).count)
        for offset, run in counts.items():
            self.records[offset] = Record(
                "done" if run.state.is_terminal else "available", run.delivery_count
            )
        for offset, record in before.items():
            now = self.record(offset)
            if record.state == "done" and record.stored:
                assert now.state == "done", "it was done"
            if now.state != "done":
                assert now.count >= self.counts.get(offset, 0)
        self.start_offset = 0
        self.open_partition()

    @rule(
        limit=st.sampled_from([2, 3, 5, 6]),
        locks=st.sampled_from([10, 20, 50]),
        back_off_ms=st.sampled_from([0, 0, 100]),
    )
    def alter_configs(self, limit: int, locks: int, back_off_ms: int) -> None:
        self.settings = replace(
            self.settings,
            delivery_count_limit=limit,
            partition_max_record_locks=locks,
            retry_backoff_ms=back_off_ms,
            retry_backoff_max_ms=300,
        )

    # what always holds

    @invariant()
    def the_start_offset_does_not_go_back_nor_past_what_is_not_done(self) -> None:
        start = self.partition.start_offset
        assert start >= self.start_offset
        self.start_offset = start
        assert all(self.record(offset).state == "done" for offset in range(start))
        assert self.record(start).state != "done" or start > self.partition.end_offset

    @invariant()
    def the_state_is_that_of_the_model(self) -> None:
        state = self.partition.state()
        assert state.start_offset == self.partition.start_offset
        seen = {
            offset: (run.state, run.delivery_count)
            for run in state.runs
            for offset in range(run.first_offset, run.last_offset + 1)
        }
        assert len(seen) == sum(run.last_offset - run.first_offset + 1 for run in state.runs)
        for offset in range(state.start_offset, self.partition.end_offset + 1):
            record = self.record(offset)
            if record.state == "done":
                assert seen[offset][0].is_terminal
                continue
            count = record.count
            if record.state == "acquired" or (record.state == "settling" and self.was_acquired(offset)):
                count -= 1
            assert seen.get(offset, (RecordState.AVAILABLE, 0)) == (RecordState.AVAILABLE, count)

    def was_acquired(self, offset: int) -> bool:
        return any(each.before[offset].state == "acquired" for each in self.settling if offset in each.before)

    @invariant()
    def the_first_available_record_is_read_next(self) -> None:
        start, end = self.partition.start_offset, self.partition.end_offset
        expected: int | None = next(
            (offset for offset in range(start, end + 1) if self.record(offset).state == "available"), end + 1
        )
        if expected == end + 1 and end - start + 1 >= self.settings.partition_max_record_locks:
            expected = None
        assert self.partition.next_fetch_offset() == expected

    @invariant()
    def the_next_deadline_is_that_of_the_first_lock_or_back_off(self) -> None:
        deadlines = [record.deadline_ms for record in self.records.values() if record.deadline_ms is not None]
        assert self.partition.next_deadline() == min(deadlines, default=None)

    def teardown(self) -> None:
        """Who keeps fetching and accepting gets everything done."""
        for settling in list(self.settling):
            self.store(settling)
            self.partition.settle(settling.change, stored=True, now_ms=self.now_ms)
        self.partition = SharePartition(self.partition.state(), lambda: self.settings)
        self.records.clear()
        self.settling = []
        self.start_offset = 0
        for offset in range(self.partition.start_offset):
            self.records[offset] = Record("done")
        for run in self.partition.state().runs:
            for offset in range(run.first_offset, run.last_offset + 1):
                self.records[offset] = Record("done" if run.state.is_terminal else "available", run[3])
        for _ in range(2 * MOST_OFFSETS + 10):
            self.start_offset = self.partition.start_offset
            if self.start_offset >= self.log_end or not self.log:
                return
            for offset in self.fetch("a", 10, 10, AcquireMode.BATCH_OPTIMIZED, 3):
                change = self.partition.acknowledge("a", [Acknowledgement(offset, offset, [ACCEPT])], 0)
                assert change is not None
                self.partition.settle(change, stored=True, now_ms=0)
                self.records[offset] = Record("done")
            for settling in self.settling:
                self.partition.settle(settling.change, stored=True, now_ms=0)
                self.records.update(settling.after)
            self.settling = []
        raise AssertionError("it does not come to an end")


def _offsets(change: Change | None) -> list[int]:
    if change is None or change.state is None:
        return []
    return [offset for run in change.state.runs for offset in range(run.first_offset, run.last_offset + 1)]


@pytest.mark.slow
class TestSharePartition(SharePartitionMachine.TestCase):
    settings = settings(
        max_examples=150, stateful_step_count=60, deadline=None, suppress_health_check=list(HealthCheck)
    )
