"""What is stored of a share partition, and how a change alters it.

A share partition is one partition of a topic as one share group sees it. Stored are the start offset and, at
or behind it, the runs of records that are not just new: those with a delivery count or a terminal state. What
no run covers is new. That a record is acquired is never stored: after a crash it is available again, with
the count that was stored last.

Invariants of a ShareState: runs are in order, do not overlap or touch with the same state and count, and
none begins below the start offset.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from enum import IntEnum
from operator import itemgetter
from typing import NamedTuple

UNDECIDED = -1
"""The start offset of a share partition that nobody has fetched from yet."""


_first_offset, _last_offset = itemgetter(0), itemgetter(1)


class RecordState(IntEnum):
    """Kafka's numbers."""

    AVAILABLE = 0
    ACQUIRED = 1
    ACKNOWLEDGED = 2
    ARCHIVED = 4

    @property
    def is_terminal(self) -> bool:
        return self >= RecordState.ACKNOWLEDGED


class Run(NamedTuple):
    """Records next to each other that have the same state and delivery count."""

    first_offset: int
    last_offset: int
    state: RecordState
    delivery_count: int


class ShareState(NamedTuple):
    start_offset: int = UNDECIDED
    runs: Sequence[Run] = ()

    @property
    def terminal_count(self) -> int:
        """How many records at or behind the start offset are done with."""
        return sum(run.last_offset - run.first_offset + 1 for run in self.runs if run.state.is_terminal)


class ShareStateChange(NamedTuple):
    """The start offset when the change began, and the runs that take the place of what was there.

    A change that was held up may come after others, with a start offset below theirs.
    """

    start_offset: int
    runs: Sequence[Run] = ()


def merged(state: ShareState, changes: Iterable[ShareStateChange]) -> ShareState:
    """The state after these changes, in their order. Its start offset does not go back."""
    start_offset, runs = state.start_offset, list(state.runs)
    for change in changes:
        start_offset = max(start_offset, change.start_offset)
        for run in change.runs:
            _overlay(runs, run)
    return ShareState(start_offset, tuple(_compact(runs, start_offset)))


def _overlay(runs: list[Run], new: Run) -> None:
    """Put a run among others, which are in order, in the place of what it covers."""
    first = bisect_left(runs, new.first_offset, key=_last_offset)  # the first that ends in it or behind it
    end = bisect_right(runs, new.last_offset, lo=first, key=_first_offset)
    parts = [new]
    if first < end:
        before, behind = runs[first], runs[end - 1]
        if before.first_offset < new.first_offset:
            parts.insert(0, before._replace(last_offset=new.first_offset - 1))
        if behind.last_offset > new.last_offset:
            parts.append(behind._replace(first_offset=new.last_offset + 1))
    runs[first:end] = parts


def _compact(runs: Iterable[Run], start_offset: int) -> list[Run]:
    """Equal neighbours joined, and nothing below the start offset."""
    result: list[Run] = []
    for run in runs:
        if run.last_offset < start_offset:
            continue
        if run.first_offset < start_offset:
            run = run._replace(first_offset=start_offset)
        last = result[-1] if result else None
        if last is not None and last.last_offset + 1 == run.first_offset and last[2:] == run[2:]:
            result[-1] = last._replace(last_offset=run.last_offset)
        else:
            result.append(run)
    return result
