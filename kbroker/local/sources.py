"""What a subscription reads from: a consumer of its own, a member of a group or a reader without one; what is
read ahead of its user, and how far the user is.

A record is in the user's hands until the next is asked for; then it is done. With auto commit, what is done
is committed from time to time, when the group takes its partition away, and at the end. What is in hand at
the end is not: it is delivered again, to whoever reads next. So nothing is lost, and after a crash some comes
twice.

Invariants:
- 0 ≤ noted ≤ done ≤ handed out ≤ what is read ahead, which counts in the process's budget.
- What is not handed out yet is handed back when the group takes or gives partitions: nobody else waits for it
  until all of it is worked through.
- A call that is cancelled loses nothing: what its poll brings is there for the next one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterable, Mapping, Sequence
from time import perf_counter
from typing import TYPE_CHECKING
from uuid import uuid4

from kbroker.coordinators.groups.store import TopicPartition
from kbroker.local.errors import InvalidRequest, kafka_errors
from kbroker.local.following import Following
from kbroker.local.records import ReceivedRecord, received
from kbroker.operations.consumers.consumer import Consumer
from kbroker.operations.group_offsets import NewOffset
from kbroker.pending import Pending

if TYPE_CHECKING:
    from kbroker.local.calls import Calls
    from kbroker.local.starts import Start
    from kbroker.operations.consumers.consumer import ConsumedRecord
    from kbroker.operations.consumers.settings import ConsumerSettings
    from kbroker.requests.resources import Resources

_WAIT_MS = 30_000
_LEAST_WAIT_MS = 100
_RECORD_BYTES = 300  # of Python's objects, besides contents
_NO_GROUP = ""


class Source:
    def __init__(
        self, calls: Calls, resources: Resources, consumer: Consumer, following: Following | None = None
    ) -> None:
        self.consumer = consumer
        self._calls = calls
        self._resources = resources
        self._following = following
        self._polling: Pending[list[ConsumedRecord]] | None = None
        self._arrival: asyncio.Future[None] | None = None  # of what is polled
        self._ahead: Sequence[ConsumedRecord] = ()
        self._ahead_bytes = 0
        self._handed_out = 0
        self._done = 0
        self._noted = 0
        self._offsets: dict[TopicPartition, int] = {}  # where the group goes on, by what is noted
        self._changes = 0  # of the assignment, that are known
        self._look_at = 0.0  # when it is to be seen whether something is to be committed
        settings = consumer.settings  # a poll that waits commits nothing
        soonest_ms = max(settings.auto_commit_interval_ms, _LEAST_WAIT_MS)
        self._wait_ms = min(soonest_ms, _WAIT_MS) if settings.auto_commit else _WAIT_MS
        calls.sources.add(self)

    def belongs_to(self, calls: Calls) -> bool:
        return self._calls is calls

    # handing out

    @property
    def is_ready(self) -> bool:
        """Whether there is something to take at once, and nothing else to be done."""
        return (
            self._handed_out < len(self._ahead)
            and self.consumer.assignment_changes == self._changes
            and not self._calls.slice_is_over
        )

    async def make_ready(self, ahead: int) -> None:
        """Return when there is something to take; so many records are read ahead."""
        calls = self._calls
        if calls.slice_is_over:
            await calls.turn()
        self._look_after()
        while self._handed_out == len(self._ahead):
            self._keep(())
            self._keep(await self._poll(ahead))

    def take(self, most: int) -> list[ReceivedRecord]:
        """They are in the user's hands now."""
        first, self._handed_out = self._handed_out, min(self._handed_out + most, len(self._ahead))
        return [received(*each, self) for each in self._ahead[first : self._handed_out]]

    def take_one(self) -> ReceivedRecord:
        self._handed_out += 1
        return received(*self._ahead[self._handed_out - 1], self)

    def put_down(self) -> None:
        """What is in the user's hands is done."""
        self._done = self._handed_out

    def rewind(self) -> None:
        """What is handed out and not committed comes again."""
        if self.consumer.closed:
            return
        self._keep(())
        self._offsets.clear()
        if self._polling is not None and self._polling.done:
            self._polling = self._arrival = None
        self.consumer.seek_to_committed(self.consumer.assignment)

    # committing

    async def commit(self, offsets: Mapping[TopicPartition, int]) -> None:
        """All of them, or it raises: partitions that the group has given away are refused."""
        calls, consumer = self._calls, self.consumer
        _ = calls.broker
        if consumer.closed:
            raise InvalidRequest("The subscription is closed: what is not committed is delivered again.")
        with kafka_errors:
            new = [NewOffset(*at, offset) for at, offset in offsets.items()]
            refusals = await calls.settled(consumer.commit(self._resources, new))
            for error in refusals.values():
                raise error

    async def commit_handed_out(self) -> None:
        """What is in the user's hands included."""
        offsets = self.offsets_handed_out()
        if offsets:
            await self.commit(offsets)
            self.committed(offsets)

    def committed(self, offsets: Mapping[TopicPartition, int]) -> None:
        """They need not be committed again."""
        for at, offset in offsets.items():
            if self._offsets.get(at) == offset:
                del self._offsets[at]

    def offsets_handed_out(self) -> dict[TopicPartition, int]:
        """Where the group goes on when all of it is done, as far as that is not committed."""
        self._note()
        return {**self._offsets, **_ends(self._ahead[self._done : self._handed_out])}

    # its end

    def close(self) -> Pending[None]:
        """Leave the group. What is done is committed, with auto commit. Settles when the group knows it."""
        consumer = self.consumer
        if self in self._calls.sources:
            self._calls.sources.remove(self)
            if not consumer.closed:
                self._tell_done()
            self._keep(())
            if self._following is not None:
                self._following.end()
        return consumer.expire()

    # internals

    async def _poll(self, max_records: int) -> list[ConsumedRecord]:
        calls, consumer = self._calls, self.consumer
        while True:
            if calls.slice_is_over:
                await calls.turn()
            _ = calls.broker  # raises unless it is open
            if self._polling is None:
                waiting = None if self._following is None else self._following.until_some()
                if waiting is not None:
                    await calls.settled(waiting)
                    continue
                polled = consumer.poll(self._resources, max_wait_ms=self._wait_ms, max_records=max_records)
                if not isinstance(polled, Pending):
                    if polled:
                        return polled
                    continue
                self._polling, self._arrival = polled, calls.arrival(polled)
            if self._arrival is not None:
                await asyncio.wait((self._arrival,))  # which is not cancelled with this call
                self._arrival.result()
            settled, self._polling, self._arrival = self._polling, None, None
            records = settled.result()
            if records:
                return records

    def _look_after(self) -> None:
        """Hand back what others are to have, and say what is done."""
        consumer, settings = self.consumer, self.consumer.settings
        if consumer.assignment_changes != self._changes:
            self._changes = consumer.assignment_changes
            self._tell_done()
            rest: dict[TopicPartition, int] = {}
            for topic, partition, record in self._ahead[self._handed_out :]:
                rest.setdefault(TopicPartition(topic, partition), record.offset)
            consumer.hand_back(rest)
            self._keep(())
            held = set(consumer.assignment)
            self._offsets = {at: offset for at, offset in self._offsets.items() if at in held}
        elif settings.auto_commit and perf_counter() >= self._look_at:
            self._look_at = perf_counter() + settings.auto_commit_interval_ms / 1000
            self._tell_done()

    def _tell_done(self) -> None:
        self._note()
        self.consumer.through_with(self._offsets)

    def _note(self) -> None:
        self._offsets |= _ends(self._ahead[self._noted : self._done])
        self._noted = self._done

    def _keep(self, records: Sequence[ConsumedRecord]) -> None:
        """Read ahead, in place of what was."""
        self._note()
        self._ahead = records
        self._handed_out = self._done = self._noted = 0
        size = 0
        for _, _, record in records:
            size += _RECORD_BYTES + len(record.key or b"") + len(record.value or b"")
        budget = self._resources.broker.budget
        if self._ahead_bytes:
            budget.give_back(self._ahead_bytes)
        self._ahead_bytes = size
        budget.take(size)


def _ends(records: Iterable[ConsumedRecord]) -> dict[TopicPartition, int]:
    """Where a group goes on that has done these."""
    return {TopicPartition(topic, partition): record.offset + 1 for topic, partition, record in records}


def open_member(
    calls: Calls,
    resources: Resources,
    group: str,
    settings: ConsumerSettings,
    topics: Collection[str],
    pattern: str,
) -> Source:
    """A member of a group, beside others and Kafka's own clients."""
    consumer = resources.broker.consumers.open(resources, group, settings)
    try:
        consumer.subscribe(resources, topics, pattern)
    except BaseException:
        consumer.close()
        raise
    return Source(calls, resources, consumer)


async def open_reader(
    calls: Calls,
    resources: Resources,
    settings: ConsumerSettings,
    topics: Collection[str | TopicPartition],
    pattern: str,
    start: Start,
) -> Source:
    """A reader that keeps its positions to itself."""
    consumer = Consumer(resources, _NO_GROUP, f"reader-{uuid4()}", settings)
    following = Following(resources, consumer, topics, pattern)
    source = Source(calls, resources, consumer, following)
    try:
        begun = resources.broker.long_requests.run(following.begin(start, committed=settings.read_committed))
        await calls.settled(begun)
    except BaseException:
        source.close()
        raise
    return source
