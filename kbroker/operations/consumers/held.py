"""A partition that a consumer holds: where it is, and what of it is done.

    committed ≤ done ≤ position     after the log's order, as long as nobody seeks

``position`` is where the next poll goes on. ``done`` is what the user is through with: it has polled again
since. ``delivered`` says that the user has records in hand of which that is not known.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from kbroker.coordinators.groups.store import TopicPartition


class SeekTo(Enum):
    """An end of the log, found when the partition is read next."""

    BEGINNING = "beginning"
    END = "end"


@dataclass(slots=True, eq=False)
class Held:
    at: TopicPartition
    topic_id: bytes | None = None
    """None: assigned by hand, by its name."""
    position: int | None = None
    """None: not looked up yet."""
    seek_to: SeekTo | None = None
    done: int | None = None
    committed: int | None = None
    delivered: bool = False
    revoked: bool = False
    """The group wants it back: nothing more is read of it."""

    @property
    def topic_key(self) -> str | bytes:
        return self.at.topic if self.topic_id is None else self.topic_id

    @property
    def uncommitted(self) -> int | None:
        """What is done and not committed; None: nothing."""
        return self.done if self.done is not None and self.done != self.committed else None

    def begin(self, offset: int, committed: int | None = None) -> None:
        """Read from here; nothing is in hand."""
        self.position, self.seek_to = offset, None
        self.done, self.committed = committed, committed
        self.delivered = False

    def seek(self, offset: int) -> None:
        self.position, self.seek_to = offset, None
        self.done = offset
        self.delivered = False

    def seek_to_end_of_log(self, which: SeekTo) -> None:
        self.position, self.seek_to = None, which
        self.delivered = False

    def advance(self, offset: int, *, delivered: bool) -> None:
        """What lies before has been handed out, or is nothing that is."""
        self.position = offset
        self.delivered = self.delivered or delivered

    def taken_up(self) -> None:
        """The user polls again: what it had in hand is done."""
        if self.position is not None:
            self.done = self.position
        self.delivered = False

    def through_with(self, offset: int) -> None:
        """The user has done with what lies before, of what it has in hand."""
        if self.position is not None and (self.done or 0) < offset <= self.position:
            self.done = offset
        if offset == self.position:
            self.delivered = False

    def hand_back(self, offset: int) -> None:
        """The user does not take what it was given from here on."""
        if self.delivered and self.position is not None and offset < self.position:
            self.position = offset
            self.delivered = False

    def stored(self, offset: int) -> None:
        """This offset is committed."""
        self.committed = offset
        if self.done is None or self.done < offset:
            self.done = offset  # else a later commit of what is done would take this one back
        if offset == self.position:
            self.delivered = False
