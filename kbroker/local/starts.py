"""Where reading begins: at an end of the log, an offset, or a time."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Literal

from kbroker.local.records import milliseconds
from kbroker.operations.offsets import EARLIEST, LATEST
from kbroker.operations.partitions import offset_at
from kbroker.pending import Pending, wait

if TYPE_CHECKING:
    from kbroker.requests.long_requests import Steps
    from kbroker.requests.resources import Resources

Moment = Literal["earliest", "latest"] | datetime
"""An end of the log, or a time with its time zone."""
Start = Moment | int
"""A number is an offset, in every partition that is read."""
Isolation = Literal["read_uncommitted", "read_committed"]

_ENDS = {"earliest": EARLIEST, "latest": LATEST}


def check_start(start: Start) -> None:
    """Raises ValueError."""
    if isinstance(start, str):
        if start not in _ENDS:
            raise ValueError(f"a start is 'earliest', 'latest', an offset or a datetime, not {start!r}")
    elif isinstance(start, datetime):
        milliseconds(start)
    elif start < 0:
        raise ValueError(f"an offset is 0 or more, not {start}")


def is_committed(isolation: Isolation) -> bool:
    """Raises ValueError."""
    if isolation not in ("read_uncommitted", "read_committed"):
        raise ValueError(f"isolation is 'read_uncommitted' or 'read_committed', not {isolation!r}")
    return isolation == "read_committed"


def beginning(
    resources: Resources, topic: str, partition: int, start: Start, *, committed: bool
) -> Steps[int]:
    """The offset of a checked start; what is younger than every record is the end."""
    if isinstance(start, int):
        return start
    wanted = milliseconds(start) if isinstance(start, datetime) else _ENDS[start]
    for each in (wanted, LATEST):
        found = offset_at(resources, topic, partition, each, committed=committed)
        if isinstance(found, Pending):
            found = yield from wait(found)
        if found is not None:
            return found.offset
    raise AssertionError("a log has an end")
