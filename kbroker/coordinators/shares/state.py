"""What is stored of a share partition, and how a change alters it.

A share partition is one partition of a topic as one share group sees it. Stored are the start offset and, at
or behind it, the runs of records that are not just new: those with a delivery count or a terminal state. What
no run covers is new. That a record is acquired is never stored: after a crash it is available again, with
the count that was stored last.

Invariants of a ShareState: runs are in order, do not overlap or touch with the same state and count, and
none begins below the start offset.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import IntEnum
from typing import NamedTuple

UNDECIDED = -1
"""The start offset of a share partition that nobody has fetched from yet."""


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
    start_offset, runs = state
    for change in changes:
        start_offset = max(start_offset, change.start_offset)
        runs = _overlaid(runs, change.runs)
    return ShareState(start_offset, tuple(_compact(runs, start_offset)))


def _overlaid(runs: Sequence[Run], over: Sequence[Run]) -> list[Run]:
    """All runs in order, where those of `over` hide parts of the others. Both are in order."""
    result: list[Run] = []
    position = 0
    rest: Run | None = None
    for new in over:
        while True:
            if rest is None:
                if position == len(runs):
                    break
                rest, position = runs[position], position + 1
            if rest.last_offset < new.first_offset:
                result.append(rest)
                rest = None
                continue
            if rest.first_offset < new.first_offset:
                result.append(rest._replace(last_offset=new.first_offset - 1))
            if rest.last_offset <= new.last_offset:
                rest = None
                continue
            if rest.first_offset <= new.last_offset:
                rest = rest._replace(first_offset=new.last_offset + 1)
            break
        result.append(new)
    if rest is not None:
        result.append(rest)
    result += runs[position:]
    return result


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
