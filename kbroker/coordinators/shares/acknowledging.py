"""What a member's acknowledgements would change: all of them, or none if one is not valid."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from kbroker.coordinators.shares.leases import Lease
from kbroker.coordinators.shares.records import (
    Acknowledgement,
    AcknowledgeType,
    Dead,
    InvalidAcknowledgement,
    InvalidRecordState,
)
from kbroker.coordinators.shares.settings import ShareSettings
from kbroker.coordinators.shares.window import (
    ACKNOWLEDGED,
    ACQUIRED,
    ARCHIVED,
    AVAILABLE,
    BACKING_OFF,
    Status,
    Window,
    plain,
)

GAP, ACCEPT, RELEASE, REJECT, RENEW = map(int, AcknowledgeType)

Step = tuple[int, int, Status, Status]
"""First and last offset, what the records are, what they become."""


def check_form(acknowledgements: Sequence[Acknowledgement], last_type: int = RENEW) -> None:
    """What is wrong whatever the records are. Raises InvalidAcknowledgement.

    `last_type`: the highest that may be used.
    """
    previous_last = -1
    for first, last, types in acknowledgements:
        if first > last:
            raise InvalidAcknowledgement(f"the first offset {first} is behind the last one, {last}")
        if first < previous_last:
            raise InvalidAcknowledgement(f"the offset {first} comes after {previous_last}")
        if len(types) != 1 and len(types) != last - first + 1:
            raise InvalidAcknowledgement(f"{len(types)} types for the offsets {first} to {last}")
        if min(types) < GAP or max(types) > last_type:
            raise InvalidAcknowledgement("there is no such type of acknowledgement")
        previous_last = last


class Plan:
    """Raises InvalidAcknowledgement, InvalidRecordState; changes nothing."""

    def __init__(
        self,
        window: Window,
        member_id: str | None,
        settings: ShareSettings,
        now_ms: int,
    ) -> None:
        self._window = window
        self._member_id = member_id
        self._settings = settings
        self._now_ms = now_ms
        self._back_offs: dict[int, Status] = {}
        self.steps: list[Step] = []
        self.renewed: list[tuple[int, int, Status]] = []
        self.dead: list[Dead] = []

    def acknowledge(self, acknowledgement: Acknowledgement) -> None:
        first, last, types = acknowledgement
        window = self._window
        if last < window.start_offset:
            return
        self._check_in_flight(first, last)
        begin = max(first, window.start_offset)
        if self.steps and self.steps[-1][1] >= begin:
            raise InvalidRecordState(f"the record {begin} is acknowledged twice")
        if self.renewed and self.renewed[-1][1] >= begin:
            # Renewed, and then something else: that counts.
            renewed_first, _, status = self.renewed.pop()
            if renewed_first < begin:
                self.renewed.append((renewed_first, begin - 1, status))
        for part_first, part_last, kind in _by_type(begin, last, types, first):
            for segment in window.segments(part_first, part_last):
                self._acknowledge_alike(*segment, kind)

    def give_back(self, first: int, last: int, status: Status) -> None:
        """Records whose lock has ended, or the session of who had it: no back-off."""
        if status.count >= self._settings.delivery_count_limit:
            self._archive_at_limit(first, last, status)
        else:
            self.steps.append((first, last, status, plain(AVAILABLE, status.count)))

    def _check_in_flight(self, first: int, last: int) -> None:
        window = self._window
        at = window.position(last)
        if at < 0 or window.position(max(first, window.start_offset)) < 0:
            raise InvalidRecordState(f"the records {first} to {last} are not in flight")
        if window.batches[at].last < last:
            raise InvalidAcknowledgement(f"the records {first} to {last} go past what is in flight")

    def _acknowledge_alike(self, first: int, last: int, status: Status, kind: int) -> None:
        lease = status.lease
        if status.state != ACQUIRED or lease is None or lease.member_id != self._member_id:
            raise InvalidRecordState(f"the records {first} to {last} are not acquired by {self._member_id}")
        count = status.count
        if kind == ACCEPT:
            self.steps.append((first, last, status, plain(ACKNOWLEDGED, count)))
        elif kind == RENEW:
            if not self._settings.renew_acknowledge_enable:
                raise InvalidRecordState("locks are not renewed in this group")
            self.renewed.append((first, last, status))
        elif kind == RELEASE:
            if count >= self._settings.delivery_count_limit:
                self._archive_at_limit(first, last, status)
            else:
                self.steps.append((first, last, status, self._released(first, last, count)))
        else:
            if kind == REJECT:
                self.dead.append(Dead(first, last, count, "reject"))
            self.steps.append((first, last, status, plain(ARCHIVED, count)))

    def _archive_at_limit(self, first: int, last: int, status: Status) -> None:
        self.dead.append(Dead(first, last, status.count, "limit"))
        self.steps.append((first, last, status, plain(ARCHIVED, status.count)))

    def _released(self, first: int, last: int, count: int) -> Status:
        settings = self._settings
        if not settings.retry_backoff_ms:
            return plain(AVAILABLE, count)
        status = self._back_offs.get(count)
        if status is None:
            deadline_ms = self._now_ms + _back_off_ms(settings, count)
            status = self._back_offs[count] = Status(BACKING_OFF, count, Lease(None, deadline_ms))
        assert status.lease is not None
        status.lease.ranges.append((first, last))
        return status


def _back_off_ms(settings: ShareSettings, count: int) -> int:
    longest = settings.retry_backoff_max_ms or float("inf")
    try:
        grown = settings.retry_backoff_ms * settings.retry_backoff_multiplier ** (count - 1)
    except OverflowError:
        grown = float("inf")
    longest = min(longest, 2**53)
    return int(min(grown, longest))


def _by_type(begin: int, last: int, types: Sequence[int], first: int) -> Iterator[tuple[int, int, int]]:
    """Offsets next to each other that have the same type, from `begin` on."""
    if len(types) == 1:
        yield begin, last, types[0]
        return
    while begin <= last:
        kind = types[begin - first]
        end = begin
        while end < last and types[end + 1 - first] == kind:
            end += 1
        yield begin, end, kind
        begin = end + 1
