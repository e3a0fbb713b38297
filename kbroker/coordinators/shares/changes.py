"""Changes of records that wait for the store."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import NamedTuple

from kbroker.coordinators.shares.records import Dead
from kbroker.coordinators.shares.state import RecordState, Run, ShareStateChange
from kbroker.coordinators.shares.window import ACKNOWLEDGED, ARCHIVED, SETTLING, Status, Window

_STORED_AS = {ACKNOWLEDGED: RecordState.ACKNOWLEDGED, ARCHIVED: RecordState.ARCHIVED}


def stored_as(status: Status) -> RecordState:
    return _STORED_AS.get(status.state, RecordState.AVAILABLE)


class Move(NamedTuple):
    first: int
    last: int
    before: Status
    """What the records are again if the store fails."""
    after: Status
    settling: Status


class Cause(Enum):
    LOCK_RUN_OUT = "lock run out"
    SESSION_ENDED = "session ended"


class Change:
    """Records that are settling. `state`: what is to be stored; None: nothing, it holds already."""

    __slots__ = ("cause", "dead", "moves", "state")

    def __init__(
        self, state: ShareStateChange | None, moves: Sequence[Move] = (), dead: Sequence[Dead] = ()
    ) -> None:
        self.state = state
        self.moves = moves
        self.dead = dead
        """Which of the records are archived because they were rejected or delivered too often."""
        self.cause: Cause | None = None
        """Why members lose records that they have not acknowledged; None: they said so."""


def begin(window: Window, steps: Sequence[tuple[int, int, Status, Status]], dead: Sequence[Dead]) -> Change:
    """The records of these steps (first, last, before, after), in order, are settling from now on."""
    moves = []
    runs: list[Run] = []
    like: tuple[Status, Status] | None = None
    settling = None
    for first, last, before, after in steps:
        if settling is None or like != (before, after):
            like = before, after
            settling = Status(SETTLING, before.count, before.lease)
        window.put(first, last, settling)
        moves.append(Move(first, last, before, after, settling))
        state = stored_as(after)
        if runs:
            previous = runs[-1]
            if previous[1:] == (first - 1, state, after.count):
                runs[-1] = Run(previous[0], last, state, after.count)
                continue
        runs.append(Run(first, last, state, after.count))
    return Change(ShareStateChange(window.start_offset, runs), moves, dead)
