"""A reader of a topic: of all its partitions, also of those to come, or of some.

It has no clock and asks nobody again and again: a read that finds nothing waits until a log or the topic
tells of something new.

Invariants:
- A read returns what follows the positions, and moves them past it. They move with nothing else but a seek, a
  gap, and a read that is put back.
- A position that the log does not have is a gap, which is told: the reader goes on with the oldest record
  that is left, or, behind the end, with what comes next.
- Partitions that the topic gets later are read from their first record.
- When the topic is deleted, the read fails; one that is made anew by the same name is another one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from kbroker.operations.offsets import EARLIEST
from kbroker.operations.partitions import beginning_at
from kbroker.operations.reading import ReadFrom
from kbroker.operations.records import RecordsRead, read_partitions
from kbroker.pending import Pending, wait
from kbroker.protocol.errors import ApiError, ErrorCode
from kbroker.requests.long_requests import Steps
from kbroker.security.acls import AclOperation

if TYPE_CHECKING:
    from kbroker.protocol.records import Record
    from kbroker.requests.resources import Resources
    from kbroker.topics.registry import Topic

MOST_PARTITIONS = 1000
_AT_ONCE = 50  # partitions of one read
_RETRY_MS = 1000
_PARTITION_BYTES = 1024  # about what it takes to wait for one
_AWAY = (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID)


class Part(NamedTuple):
    """What was read of one partition."""

    partition: int
    begin: int
    """Where it was read from."""
    next_offset: int
    records: Sequence[Record]


class Gap(NamedTuple):
    """Records that were to be read and are not there."""

    partition: int
    offset: int
    """That was wanted."""
    next_offset: int
    """Where the reader goes on."""


class TopicRead(NamedTuple):
    parts: Sequence[Part]
    gaps: Sequence[Gap]
    new: Mapping[int, int]
    """Partitions that the topic got since the read before, and where they begin."""
    size_bytes: int
    """About what the records take in memory."""


class TopicGone(ApiError):
    def __init__(self, name: str) -> None:
        super().__init__(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"The topic {name} was deleted.")


class TooManyPartitions(ApiError):
    def __init__(self, name: str) -> None:
        super().__init__(
            ErrorCode.INVALID_REQUEST,
            f"The topic {name} has more than {MOST_PARTITIONS} partitions: name some of them, or read them "
            "as members of a group.",
        )


class TopicReader:
    """Made by `open_reader`. It must be closed."""

    def __init__(self, resources: Resources, topic: Topic, *, grows: bool, committed: bool) -> None:
        self.topic = topic
        self.positions: dict[int, int] = {}
        """Where it goes on in each partition."""
        self._resources = resources
        self._broker = resources.broker
        self._grows = grows
        self._committed = committed
        self._ready: dict[int, None] = {}  # where there may be something to read, the next first
        self._new: dict[int, int] = {}
        self._changed: set[int] = set()  # where something is new since the read under way began
        self._unwatch = [resources.watch_topic(topic, self._wake)]
        self._waiting: Pending[None] | None = None
        self._retries: set[Callable[[], None]] = set()

    def read(self, max_records: int, max_bytes: int) -> Pending[TopicRead]:
        """As soon as there is something, be it only that positions have moved. One at a time."""
        return self._broker.long_requests.run_in_turn(self._read(max_records, max_bytes))

    def seek(self, partition: int, offset: int) -> None:
        """Let the next read go on here, in a partition that it reads."""
        if partition not in self.positions:
            raise ApiError(
                ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"Partition {partition} of the topic is not read here."
            )
        self.positions[partition] = offset
        self._note(partition)

    def put_back(self, read: TopicRead) -> None:
        """Nobody has had it: let the next read return it again."""
        self._new = {**read.new, **self._new}
        for part in read.parts:
            self.seek(part.partition, part.begin)

    def close(self) -> None:
        for end in (*self._unwatch, *self._retries):
            end()
        self._unwatch.clear()
        self._retries.clear()
        self._broker.budget.give_back(_PARTITION_BYTES * len(self.positions))
        self.positions = {}

    # which partitions

    def take_in(
        self, partitions: Sequence[int], positions: Mapping[int, int], new: dict[int, int] | None = None
    ) -> Steps[None]:
        """Read these partitions, too; from their first record, where no position is given.

        ``new``: gets their positions.
        """
        name = self.topic.name
        if len(self.positions) + len(partitions) > MOST_PARTITIONS:
            raise TooManyPartitions(name)
        for number in partitions:
            position = positions.get(number)
            if position is None:
                begin = beginning_at(self._resources, name, number, EARLIEST)
                position = (yield from wait(begin)) if isinstance(begin, Pending) else begin
            log = self._resources.log_of(self._topic(), number)
            self._unwatch.append(log.watch(partial(self._note, number)))
            self._broker.budget.take(_PARTITION_BYTES)
            self.positions[number] = position
            if new is not None:
                new[number] = position
            self._note(number)
            yield None

    def _topic(self) -> Topic:
        try:
            return self._resources.topic(self.topic.topic_id, AclOperation.READ)
        except ApiError as error:
            if error.code in _AWAY:
                raise TopicGone(self.topic.name) from None
            raise

    def _grow(self) -> Steps[None]:
        """Take in what is new of the topic, which must be there."""
        topic = self._topic()
        if self._grows and topic.partitions > len(self.positions):
            yield from self.take_in(range(len(self.positions), topic.partitions), {}, self._new)

    # reading

    def _read(self, max_records: int, max_bytes: int) -> Steps[TopicRead]:
        while True:
            yield from self._grow()
            asked = [
                ReadFrom(self.topic.topic_id, number, self.positions[number], max_bytes)
                for number in self._next()
            ]
            if not asked:
                yield from wait(self._until_changed())
                continue
            self._changed.clear()
            found = read_partitions(
                self._resources,
                asked,
                max_records=max_records,
                max_bytes=max_bytes,
                committed=self._committed,
            )
            reads = (yield from wait(found)) if isinstance(found, Pending) else found
            taken = self._take(asked, reads)
            if taken is not None:
                return taken

    def _next(self) -> Iterator[int]:
        for count, number in enumerate(self._ready):
            if count == _AT_ONCE:
                return
            yield number

    def _take(self, asked: Sequence[ReadFrom], reads: Sequence[RecordsRead]) -> TopicRead | None:
        """Let the positions move past what was read. None: there was nothing."""
        parts: list[Part] = []
        gaps: list[Gap] = []
        failure: ApiError | None = None
        size = 0
        for wanted, read in zip(asked, reads, strict=True):
            number, begin = wanted.partition, wanted.fetch_offset
            if self.positions.get(number) != begin:
                continue  # somebody seeks
            if read.error is not None:
                gap = self._gap(read, read.error)
                if gap is not None:
                    self.positions[number] = gap.next_offset
                    gaps.append(gap)
                elif read.error.code is not ErrorCode.OFFSET_OUT_OF_RANGE:  # else it is in range by now
                    failure = self._failed(number, read.error) or failure
                continue
            self.positions[number] = read.next_offset
            moved = read.next_offset != begin
            if moved:
                parts.append(Part(number, begin, read.next_offset, read.records))
                size += read.size_bytes
            self._look_later(number, read, moved=moved)
        if failure is not None and not parts:
            raise failure
        if not parts and not gaps:
            return None
        new, self._new = self._new, {}
        return TopicRead(parts, gaps, new, size)

    def _look_later(self, number: int, read: RecordsRead, *, moved: bool) -> None:
        """After the others, if something was read; not before something changes, if that was all."""
        end = read.last_stable_offset if self._committed else read.high_watermark
        rest = read.next_offset < end or number in self._changed
        if moved or not rest:
            self._ready.pop(number, None)
        if rest:
            self._ready[number] = None

    def _gap(self, read: RecordsRead, error: ApiError) -> Gap | None:
        if error.code is not ErrorCode.OFFSET_OUT_OF_RANGE or read.log_start_offset < 0:
            return None
        end = read.last_stable_offset if self._committed else read.high_watermark
        return gap_at(read.partition, read.next_offset, read.log_start_offset, end)

    def _failed(self, number: int, error: ApiError) -> ApiError | None:
        """What ends the reading; None: it may get better."""
        if not error.code.retriable:
            return error
        self._ready.pop(number, None)

        def again() -> None:
            self._retries.discard(cancel)
            self._note(number)

        cancel = self._broker.scheduler.after(_RETRY_MS, again)
        self._retries.add(cancel)
        return None

    # waiting

    def _note(self, partition: int) -> None:
        """Something is new there. Called by a log in the middle of an append: nothing is read now."""
        self._ready[partition] = None
        self._changed.add(partition)
        self._wake()

    def _wake(self) -> None:
        waiting, self._waiting = self._waiting, None
        if waiting is not None:
            waiting.resolve(None)

    def _until_changed(self) -> Pending[None]:
        self._waiting = Pending()
        return self._waiting


def gap_at(partition: int, offset: int, log_start_offset: int, end_offset: int) -> Gap | None:
    """What lies between a position and where its reader can go on; None: the position is in the log."""
    if offset < log_start_offset:
        return Gap(partition, offset, log_start_offset)
    return Gap(partition, offset, end_offset) if offset > end_offset else None


def open_reader(
    resources: Resources,
    topic: Topic,
    partitions: Sequence[int] | None,
    positions: Mapping[int, int],
    *,
    committed: bool,
) -> Steps[TopicReader]:
    """Of these partitions, or of all. One without a position is read from its first record."""
    reader = TopicReader(resources, topic, grows=partitions is None, committed=committed)
    try:
        yield from reader.take_in(range(topic.partitions) if partitions is None else partitions, positions)
    except BaseException:
        reader.close()
        raise
    return reader


def positions_at(
    resources: Resources, topic: Topic, partitions: Sequence[int], timestamp: int, *, committed: bool
) -> Steps[dict[int, int]]:
    """Where a reader begins that wants what is as young as this, or EARLIEST or LATEST."""
    positions: dict[int, int] = {}
    for number in partitions:
        begin = beginning_at(resources, topic.name, number, timestamp, committed=committed)
        positions[number] = (yield from wait(begin)) if isinstance(begin, Pending) else begin
        yield None
    return positions
