"""Which records a member gets, of those that a read of the log has found. Kafka's rules:

- batch_optimized: whole in-flight batches, and new records up to the end of the log batch in which the limit
  is reached. record_limit: no more than the limit; what is left of a log batch is available to others.
- Ours: of a log batch no more than _MOST_AT_ONCE records, if the limit is not higher. One may have a million,
  and one request may give each a state of its own. What is left is new, and given with later fetches.
- New records are cut into in-flight batches where a log batch begins, once they are as many as batch_size.
- Records that were delivered often are given in ever smaller portions, so that a bad one among them does
  not take the others with it. From T = max(2, limit / 2 rounded up) deliveries on: half of the in-flight
  batch, then a quarter and so on, and nothing of other batches; the last attempt of a record has it alone.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence

from kbroker.coordinators.shares.leases import Lease
from kbroker.coordinators.shares.records import Acquired, LogBatch
from kbroker.coordinators.shares.window import ACQUIRED, AVAILABLE, InFlightBatch, Status, Window, plain

_MOST_AT_ONCE = 10_000
"""As many as a share partition may have in flight by its configs. So there are at most twice as many."""


class Acquisition:
    """Of one member at one time. `limit`: at most so many records, as far as the mode takes that strictly."""

    def __init__(
        self,
        window: Window,
        lease: Lease,
        batches: Sequence[LogBatch],
        *,
        limit: int,
        batch_size: int,
        strictly: bool,
        delivery_count_limit: int,
    ) -> None:
        self._window = window
        self._lease = lease
        self._batches = batches
        self._left = limit
        self._batch_size = batch_size
        self._strictly = strictly
        self._delivery_count_limit = delivery_count_limit
        self._throttled_from = max(2, (delivery_count_limit + 1) // 2)
        self._statuses: dict[int, Status] = {}
        self.acquired: list[Acquired] = []

    def take(self, first: int, last: int) -> None:
        """Of these offsets."""
        window = self._window
        batches = window.batches
        position = max(window.position(first), 0)
        while first <= last and self._left > 0:
            if position < len(batches) and batches[position].last < first:
                position += 1
                continue
            if position == len(batches) or batches[position].first > first:
                hole_last = last if position == len(batches) else min(last, batches[position].first - 1)
                self._take_new(first, hole_last)
                first = hole_last + 1
                position = max(window.position(first), 0)
                continue
            batch = batches[position]
            if batch.available and not self._take_again(batch, first, min(last, batch.last)):
                return
            first = batch.last + 1
            position += 1

    def _take_new(self, first: int, last: int) -> None:
        taken_last = last
        if self._left < last - first + 1:
            most_last = first + max(self._left, _MOST_AT_ONCE) - 1
            taken_last = min(self._batch_end(first + self._left - 1), last, most_last)
        if self._strictly:
            given = min(taken_last, first + self._left - 1)
            batch = InFlightBatch(first, taken_last, self._status(1))
            if given < taken_last:
                batch.put(given + 1, taken_last, plain(AVAILABLE, 0))
            self._window.add(batch)
            self._give(first, given, 1)
            return
        begin = first
        if taken_last - first + 1 > self._batch_size:
            for each in self._batches:
                border = each.first_offset
                if border > taken_last:
                    break
                if border - begin >= self._batch_size:
                    self._add_new(begin, border - 1)
                    begin = border
        self._add_new(begin, taken_last)

    def _add_new(self, first: int, last: int) -> None:
        self._window.add(InFlightBatch(first, last, self._status(1)))
        self._give(first, last, 1)

    def _take_again(self, batch: InFlightBatch, first: int, last: int) -> bool:
        """Available records of the batch. False: and nothing after them."""
        available = [each for each in batch.segments(first, last) if each[2].state == AVAILABLE]
        throttled = any(status.count >= self._throttled_from for _, _, status in available)
        if throttled and self.acquired:
            return False
        most = min(batch.size, self._left) if self._strictly else batch.size
        portion = 0
        given = 0
        for begin, end, status in available:
            count = status.count
            if count >= self._throttled_from and not portion:
                portion = max(1, batch.size >> (count - self._throttled_from + 1))
                if given >= portion:
                    # Kafka would give all the rest of the batch.
                    break
                most = min(most, portion)
            if count >= self._delivery_count_limit - 1 > 1:
                if given:
                    break
                most = 1
            end = min(end, begin + most - given - 1)
            batch.put(begin, end, self._status(count + 1))
            self._give(begin, end, count + 1)
            given += end - begin + 1
            if given >= most:
                break
        return not (throttled and given)

    def _give(self, first: int, last: int, count: int) -> None:
        self.acquired.append(Acquired(first, last, count))
        self._lease.ranges.append((first, last))
        self._left -= last - first + 1

    def _status(self, count: int) -> Status:
        status = self._statuses.get(count)
        if status is None:
            status = self._statuses[count] = Status(ACQUIRED, count, self._lease)
        return status

    def _batch_end(self, offset: int) -> int:
        """The last offset of the log batch that covers this one."""
        position = bisect_right(self._batches, offset, key=lambda each: each.first_offset) - 1
        return max(offset, self._batches[position].last_offset) if position >= 0 else offset
