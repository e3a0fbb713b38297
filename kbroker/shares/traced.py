"""What traces are told of records of a share group, once it is stored."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kbroker.coordinators.shares.changes import Cause
from kbroker.coordinators.shares.window import ACKNOWLEDGED, ARCHIVED
from kbroker.storage.trace_events import ACKNOWLEDGED as TOLD_ACKNOWLEDGED
from kbroker.storage.trace_events import LOCK_RUN_OUT, REJECTED, RELEASED

if TYPE_CHECKING:
    from kbroker.coordinators.shares.changes import Change, Move
    from kbroker.storage.interface import LogTrace


def tell_trace(trace: LogTrace, group_id: str, change: Change) -> None:
    reasons = {dead.first_offset: dead.reason for dead in change.dead}
    for move in change.moves:
        event = _event(change, move, reasons.get(move.first))
        lease = move.before.lease
        if event is None or lease is None:
            continue
        attributes: dict[str, str | int] = {"group": group_id, "deliveryCount": move.before.count}
        if lease.member_id:
            attributes["member"] = lease.member_id
        if change.cause is Cause.SESSION_ENDED:
            attributes["reason"] = change.cause.value
        trace.happened(event, move.first, move.last, attributes)


def _event(change: Change, move: Move, reason: str | None) -> str | None:
    """``reason``: why it is given up; None: of a gap, which is told to nobody."""
    if move.after.state == ACKNOWLEDGED:
        return TOLD_ACKNOWLEDGED
    given_up = LOCK_RUN_OUT if change.cause is Cause.LOCK_RUN_OUT else RELEASED
    if move.after.state != ARCHIVED:
        return given_up
    if reason is None:
        return None
    return REJECTED if reason == "reject" else given_up
