"""The window: the state of every record in flight in a share partition, from the start offset on.

It is kept by in-flight batches, as in Kafka: records that were first acquired together. A batch has one
Status for all its records until it is cut; from then on one for each, until they are all the same again.
Records that are alike share one Status: a record costs a pointer at most, and to compare is `is`.

What no batch covers, between the start offset and the end, is new: a hole that a restart has left, of records
that were acquired and never answered. Offsets that the log has not are archived.

Invariants: batches are in order and do not overlap. Records of a batch below the start offset are terminal.
A batch counts its records that are not terminal (`open`) and those that are available, a lease its own.
"""

from __future__ import annotations

from bisect import bisect_right
from functools import cache

from kbroker.coordinators.shares.leases import Lease
from kbroker.coordinators.shares.state import RecordState

AVAILABLE = int(RecordState.AVAILABLE)
ACQUIRED = int(RecordState.ACQUIRED)
ACKNOWLEDGED = int(RecordState.ACKNOWLEDGED)
ARCHIVED = int(RecordState.ARCHIVED)
# Ours: their next state waits for the store; released, and not to be given again yet.
SETTLING = 5
BACKING_OFF = 6


class Status:
    """Never changed once made."""

    __slots__ = ("count", "lease", "state", "terminal")

    def __init__(self, state: int, count: int, lease: Lease | None = None) -> None:
        self.state = state
        self.count = count
        self.lease = lease
        self.terminal = state in (ACKNOWLEDGED, ARCHIVED)


@cache
def plain(state: int, count: int) -> Status:
    """The one Status of records that have no lease."""
    return Status(state, count)


class InFlightBatch:
    __slots__ = ("available", "first", "last", "open", "size", "status", "statuses")

    def __init__(self, first: int, last: int, status: Status) -> None:
        self.first = first
        self.last = last
        self.size = size = last - first + 1
        self.status = status
        """Of all records, while there are no `statuses`."""
        self.statuses: list[Status] | None = None
        self.open = 0 if status.terminal else size
        self.available = size if status.state == AVAILABLE else 0
        if status.lease is not None:
            status.lease.held += size

    def segments(self, first: int, last: int) -> list[tuple[int, int, Status]]:
        """Records next to each other that are alike."""
        statuses = self.statuses
        if statuses is None:
            return [(first, last, self.status)]
        base = self.first
        position, stop = first - base, last - base + 1
        status = statuses[position]
        if first == last or statuses[position:stop].count(status) == stop - position:
            return [(first, last, status)]
        found = []
        begin = position
        while (position := position + 1) < stop:
            following = statuses[position]
            if following is not status:
                found.append((base + begin, base + position - 1, status))
                begin, status = position, following
        found.append((base + begin, last, status))
        return found

    def put(self, first: int, last: int, status: Status) -> None:
        for begin, end, old in self.segments(first, last):
            self._count(old, status, end - begin + 1)
        number = last - first + 1
        if number == self.size:
            self.status, self.statuses = status, None
            return
        statuses = self.statuses
        if statuses is None:
            self.statuses = statuses = [self.status] * self.size
        position = first - self.first
        if number == 1:
            statuses[position] = status
        else:
            statuses[position : position + number] = [status] * number
        alike = not self.open or self.available == self.size
        if alike and statuses.count(status) == self.size:
            self.status, self.statuses = status, None

    def _count(self, old: Status, new: Status, number: int) -> None:
        if old.state == AVAILABLE:
            self.available -= number
        elif old.lease is not None:
            old.lease.held -= number
        if new.state == AVAILABLE:
            self.available += number
        elif new.lease is not None:
            new.lease.held += number
        if new.terminal:
            self.open -= number


class Window:
    def __init__(self, start_offset: int) -> None:
        self.start_offset = start_offset
        self.batches: list[InFlightBatch] = []
        self._firsts: list[int] = []
        self._closed_below = start_offset
        """No record below is available or new."""

    @property
    def end_offset(self) -> int:
        return self.batches[-1].last if self.batches else self.start_offset - 1

    @property
    def size(self) -> int:
        return self.end_offset - self.start_offset + 1

    def position(self, offset: int) -> int:
        """Of the batch that covers the offset, else of the last one before it; -1: none is."""
        return bisect_right(self._firsts, offset) - 1

    def covering(self, first: int, last: int) -> list[InFlightBatch]:
        """The batches that these offsets meet."""
        if not self.batches or first > last:
            return []
        position = max(self.position(first), 0)
        batch = self.batches[position]
        if batch.first <= first and last <= batch.last:
            return [batch]
        following = self.position(last) + 1
        return [batch for batch in self.batches[position:following] if batch.last >= first]

    def segments(self, first: int, last: int) -> list[tuple[int, int, Status]]:
        found: list[tuple[int, int, Status]] = []
        for batch in self.covering(first, last):
            found += batch.segments(max(first, batch.first), min(last, batch.last))
        return found

    def holes(self, first: int, last: int) -> list[tuple[int, int]]:
        """What no batch covers, be it behind the end."""
        found = []
        for batch in self.covering(first, last):
            if batch.first > first:
                found.append((first, batch.first - 1))
            first = max(first, batch.last + 1)
        if first <= last:
            found.append((first, last))
        return found

    def add(self, batch: InFlightBatch) -> None:
        """Where there is a hole, or behind the end."""
        if batch.first > self.end_offset:
            self._firsts.append(batch.first)
            self.batches.append(batch)
        else:
            position = self.position(batch.first) + 1
            self._firsts.insert(position, batch.first)
            self.batches.insert(position, batch)
        if batch.available:
            self._opened(batch.first)

    def put(self, first: int, last: int, status: Status) -> None:
        """All of these that are in flight."""
        for batch in self.covering(first, last):
            batch.put(max(first, batch.first), min(last, batch.last), status)
        if status.state == AVAILABLE:
            self._opened(first)

    def replace(self, first: int, last: int, old: Status, new: Status) -> None:
        """Only those that have the old one still."""
        for batch in self.covering(first, last):
            for begin, end, status in batch.segments(max(first, batch.first), min(last, batch.last)):
                if status is old:
                    batch.put(begin, end, new)
        if new.state == AVAILABLE:
            self._opened(first)

    def advance(self) -> bool:
        """The start offset, over terminal records. Whether it moved."""
        before = start = self.start_offset
        done = 0
        for batch in self.batches:
            if batch.first > start:
                break
            if batch.open:
                if batch.statuses is not None:
                    position = start - batch.first
                    while batch.statuses[position].terminal:
                        position += 1
                    start = batch.first + position
                break
            start = batch.last + 1
            done += 1
        if done:
            del self.batches[:done]
            del self._firsts[:done]
        self.start_offset = start
        return start != before

    def begin_at(self, offset: int) -> None:
        """Nothing below counts any more."""
        gone = 0
        for batch in self.batches:
            if batch.first >= offset:
                break
            last = min(batch.last, offset - 1)
            for begin, end, status in batch.segments(batch.first, last):
                if not status.terminal:
                    batch.put(begin, end, plain(ARCHIVED, status.count))
            if batch.last >= offset:
                break
            gone += 1
        del self.batches[:gone]
        del self._firsts[:gone]
        self.start_offset = offset
        self.advance()

    def next_open(self) -> int:
        """The first record that is available or new, if only the one behind the end."""
        offset = max(self._closed_below, self.start_offset)
        if not self.batches:
            return offset
        for position in range(max(self.position(offset), 0), len(self.batches)):
            batch = self.batches[position]
            if batch.last < offset:
                continue
            if batch.first > offset:
                break
            if batch.available:
                statuses = batch.statuses
                if statuses is None:
                    break
                found = next(
                    (at for at in range(offset - batch.first, batch.size) if statuses[at].state == AVAILABLE),
                    None,
                )
                if found is not None:
                    offset = batch.first + found
                    break
            offset = batch.last + 1
        self._closed_below = offset
        return offset

    def _opened(self, offset: int) -> None:
        self._closed_below = min(self._closed_below, offset)
