"""Reading: several partitions under one limit of bytes, waiting until there is enough.

Invariants:
- The answer holds whole batches. It stays within max_bytes, except that its first batch is returned
  whatever its size, so that a reader always gets on.
- While waiting nothing of what was read is held; what the log got meanwhile is read when the wait ends.
- The wait ends with enough bytes, an error, the deadline, or the reader's end.
- An answer takes a part of what the budget has left. When that is little, records are not read at all but
  sent from where they are, a little at a time; who needs them read waits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

from kbroker.errors import error_code
from kbroker.pending import Pending, mapped
from kbroker.protocol.errors import ApiError, ErrorCode
from kbroker.security.acls import AclOperation
from kbroker.storage.errors import StorageError
from kbroker.storage.interface import WantedRead
from kbroker.storage.trace_events import FETCHED
from kbroker.topics import leader_epochs

if TYPE_CHECKING:
    from kbroker.requests.resources import Resources, TopicKey
    from kbroker.storage.interface import EpochEndOffset, Log, Slice
    from kbroker.topics.registry import Topic

_BUDGET_STEP = 1024 * 1024
_LARGEST_PART = 4  # of what the budget has left, for one answer: there is always a rest
_LEAST_BYTES = 64 * 1024
_UNREAD_BYTES = 1024 * 1024  # of an answer whose records are not read, for want of room to hold them
_TURN_SECONDS = 0.004
_PER_LOOK = 4  # partitions, from one look at the clock to the next
_ANSWER_BYTES, _PARTITION_BYTES = 50, 60  # of an answer and of each partition in it, besides records


class PartitionFetch(Protocol):
    """What one partition is asked for."""

    topic: TopicKey
    partition: int
    fetch_offset: int
    max_bytes: int
    current_leader_epoch: int
    last_fetched_epoch: int


P = TypeVar("P", bound=PartitionFetch)


@dataclass(slots=True)
class ReadFrom:
    """The same of a reader that knows no epochs."""

    topic: TopicKey
    partition: int
    fetch_offset: int
    max_bytes: int
    current_leader_epoch: int = leader_epochs.UNKNOWN
    last_fetched_epoch: int = leader_epochs.UNKNOWN


class PartitionRead(Generic[P]):
    """What became of one partition."""

    __slots__ = ("asked", "diverged_log", "diverging", "error", "log", "slice", "topic")

    def __init__(self, asked: P) -> None:
        self.asked = asked
        self.topic: Topic | None = None
        self.log: Log | None = None
        self.slice: Slice | None = None
        self.error: ErrorCode = ErrorCode.NONE
        self.diverging: EpochEndOffset | None = None
        self.diverged_log: Log | None = None


def answer_bytes(reads: Sequence[PartitionRead[P]]) -> int:
    """About what an answer with this takes."""
    return _ANSWER_BYTES + sum(
        _PARTITION_BYTES + (0 if read.slice is None else read.slice.size_bytes) for read in reads
    )


def most_record_bytes(most_answer_bytes: int, partitions: int) -> int:
    """How many bytes of records fit into an answer of so many, with so many partitions; one if none do."""
    return max(most_answer_bytes - _ANSWER_BYTES - _PARTITION_BYTES * partitions, 1)


class Fetching(Generic[P]):
    """One fetch under way. ``start`` answers at once or with a Pending."""

    def __init__(
        self,
        resources: Resources,
        partitions: Sequence[P],
        *,
        min_bytes: int,
        max_bytes: int,
        max_wait_ms: int,
        committed: bool,
        hard_limit: bool = False,
        sendable: bool = True,
    ) -> None:
        self._resources = resources
        self._broker = resources.broker
        self._asked = partitions
        self._min_bytes = min_bytes
        self._max_bytes = max_bytes
        self._max_wait_ms = max_wait_ms
        self._committed = committed
        self._hard_limit = hard_limit  # before version 3 a batch larger than the limit is not returned
        self._sendable = sendable  # what is read goes out as it is
        self._unread = False  # there is no room to hold it
        self._reads: list[PartitionRead[P]] = []
        self._size = 0
        self._failed = False
        self._traced = False  # something was read of a log whose topic is traced
        self._final = max_wait_ms <= 0 or not partitions
        self._limit = max_bytes
        self._result: Pending[list[PartitionRead[P]]] | None = None
        self._cancel_deadline: Callable[[], None] | None = None
        self._withdraw: Callable[[], None] | None = None  # a wait for the budget
        self._watched: list[Log] = []
        self._unwatch: list[Callable[[], None]] = []
        self._watched_bytes = 0
        self._woken = False
        self._waits = False  # for a log to change: no attempt is under way

    def start(self) -> list[PartitionRead[P]] | Pending[list[PartitionRead[P]]]:
        if self._attempt():
            return self._reads
        assert self._result is not None
        return self._result

    # one attempt: partition after partition

    def _attempt(self) -> bool:
        """Read everything asked for. False: it goes on later, and ends in the Pending."""
        budget = self._broker.budget
        self._unread = self._sendable and budget.tight
        if not budget.available and not self._unread:
            self._become_pending()
            self._withdraw = budget.reserve(_BUDGET_STEP, self._budget_granted)
            return False
        self._reads = []
        self._size = 0
        self._failed = False
        most = _UNREAD_BYTES if self._unread else max(budget.available // _LARGEST_PART, _LEAST_BYTES)
        self._limit = min(self._max_bytes, most)
        prepared = self._broker.logs.prepare_reads(self._wanted, self._limit)
        if prepared is not None:
            self._hold_until(prepared)
            return False
        return self._go_on(0)

    def _wanted(self) -> Iterator[WantedRead]:
        """What the reads are of, as far as there are logs to read."""
        for asked in self._asked:
            try:
                topic = self._resources.topic(asked.topic, AclOperation.READ)
                log = self._resources.log_of(topic, asked.partition)
            except (ApiError, StorageError):
                continue  # so does the read, which tells the client
            yield WantedRead(log, asked.fetch_offset, asked.max_bytes)

    def _hold_until(self, prepared: Pending[None]) -> None:
        """The budget is held for what comes; the reads follow."""
        budget = self._broker.budget
        held = 0 if self._unread else self._limit
        budget.take(held)
        self._become_pending()

        def go_on(_: Pending[None]) -> None:
            budget.give_back(held)
            if self._result is not None and not self._result.abandoned:
                self._resume(0)

        prepared.then(go_on)

    def _budget_granted(self) -> None:
        self._withdraw = None
        self._broker.budget.give_back(_BUDGET_STEP)
        self._broker.scheduler.soon(self._again)

    def _go_on(self, first: int) -> bool:
        turn_ends = perf_counter() + _TURN_SECONDS
        for index in range(first, len(self._asked)):
            if index % _PER_LOOK == _PER_LOOK - 1 and index > first and perf_counter() > turn_ends:
                self._let_others_go_first(index)
                return False
            read = self._begin(self._asked[index])
            self._reads.append(read)
            if read.log is None:
                continue
            try:
                got = self._read(read.log, read.asked)
            except Exception as error:
                self._fail(read, error)
                continue
            if isinstance(got, Pending):
                self._hold_for(got, read, index)
                return False
            read.slice = got
            self._size += got.size_bytes
            if read.log.trace is not None:
                self._traced = True
        if self._is_enough():
            if self._traced:
                self._tell_traces()
            self._finish()
            return True
        self._wait()
        return False

    def _is_enough(self) -> bool:
        return self._final or self._failed or self._size >= self._min_bytes

    def _begin(self, asked: P) -> PartitionRead[P]:
        read = PartitionRead(asked)
        try:
            topic = read.topic = self._resources.topic(asked.topic, AclOperation.READ)
            log = self._resources.log_of(topic, asked.partition)
            if asked.current_leader_epoch >= 0:
                leader_epochs.check(asked.current_leader_epoch, self._broker.cluster.leader_epoch(topic))
            if asked.last_fetched_epoch >= 0:
                read.diverging = _divergence(log, asked)
            if read.diverging is None:
                read.log = log
            else:
                read.diverged_log = log
                self._failed = True
        except Exception as error:
            self._fail(read, error)
        return read

    def _tell_traces(self) -> None:
        """These records go to the reader."""
        attributes = self._resources.of_caller()
        for read in self._reads:
            log, got = read.log, read.slice
            if log is not None and log.trace is not None and got is not None and got.size_bytes:
                log.trace.happened(FETCHED, read.asked.fetch_offset, got.next_offset - 1, attributes)

    def _read(self, log: Log, asked: P) -> Slice | Pending[Slice]:
        first = self._size == 0 and not self._hard_limit
        room = max(0, min(asked.max_bytes, self._limit - self._size))
        return log.read(
            asked.fetch_offset,
            room,
            committed=self._committed,
            min_one=first,
            sendable=self._sendable,
            unread=self._unread,
        )

    def _fail(self, read: PartitionRead[P], error: Exception) -> None:
        code = error_code(error)
        if code is None:
            raise error
        read.error = code
        read.log = None
        self._failed = True

    def _hold_for(self, cold: Pending[Slice], read: PartitionRead[P], index: int) -> None:
        """A read that needs the disk: the budget is held for it, the rest comes after it."""
        budget = self._broker.budget
        held = 0 if self._unread else min(read.asked.max_bytes, self._limit)
        budget.take(held)
        self._become_pending()

        def arrived(settled: Pending[Slice]) -> None:
            budget.give_back(held)
            if self._result is not None and self._result.abandoned:
                return
            try:
                read.slice = settled.result()
                self._size += read.slice.size_bytes
                self._traced |= read.log is not None and read.log.trace is not None
            except Exception as error:
                try:
                    self._fail(read, error)
                except Exception as unforeseen:
                    self._settle_failed(unforeseen)
                    return
            self._resume(index + 1)

        cold.then(arrived)

    def _let_others_go_first(self, index: int) -> None:
        """Many partitions: go on in another turn; what was read counts in the budget until then."""
        budget, held = self._broker.budget, self._size
        budget.take(held)
        self._become_pending()

        def go_on() -> None:
            budget.give_back(held)
            if self._result is not None and not self._result.abandoned:
                self._resume(index)

        self._broker.scheduler.soon(go_on)

    def _resume(self, index: int) -> None:
        try:
            done = self._go_on(index)
        except Exception as error:
            self._settle_failed(error)
            return
        if done and self._result is not None:
            self._result.resolve(self._reads)

    # waiting

    def _wait(self) -> None:
        self._become_pending()
        self._watch()
        self._reads = []
        self._woken = False
        self._waits = True
        if self._cancel_deadline is None:
            self._cancel_deadline = self._broker.scheduler.after(self._max_wait_ms, self._deadline)

    def _watch(self) -> None:
        self._watched = [read.log for read in self._reads if read.log is not None]
        self._watched_bytes = sum(log.size_bytes for log in self._watched) - self._size
        self._unwatch = [log.watch(self._wake) for log in self._watched]

    def _wake(self) -> None:
        """Called by a log in the middle of an append: only note it, and look when that is over."""
        if not self._woken:
            self._woken = True
            self._broker.scheduler.soon(self._look)

    def _look(self) -> None:
        if not self._waits:
            return
        self._woken = False
        readable = sum(log.size_bytes for log in self._watched) - self._watched_bytes
        # Committed reads depend on the last stable offset, deletions shrink the log: then just try.
        if 0 < readable < self._min_bytes and not self._committed:
            return
        self._again()

    def _deadline(self) -> None:
        self._final = True  # for an attempt that is under way, too
        if self._waits:
            self._again()

    def _again(self) -> None:
        if self._result is None or self._result.done:
            return
        self._stop_watching()
        try:
            done = self._attempt()
        except Exception as error:
            self._settle_failed(error)
            return
        if done:
            self._result.resolve(self._reads)

    def _become_pending(self) -> None:
        if self._result is None:
            self._result = Pending(self._finish)

    def _settle_failed(self, error: Exception) -> None:
        self._finish()
        if self._result is not None:
            self._result.fail(error)

    def _stop_watching(self) -> None:
        self._waits = False
        for unwatch in self._unwatch:
            unwatch()
        self._watched, self._unwatch = [], []

    def _finish(self) -> None:
        """Let go of all that refers to this: who holds much must not wait for the garbage collector."""
        self._stop_watching()
        if self._cancel_deadline is not None:
            self._cancel_deadline()
            self._cancel_deadline = None
        if self._withdraw is not None:
            self._withdraw()
            self._withdraw = None


def read(
    resources: Resources, wanted: ReadFrom, *, max_wait_ms: int = 0, committed: bool = False
) -> Slice | Pending[Slice]:
    """Whole batches of one partition, waiting for the first of them; the first may begin before the offset.

    What keeps them from being read raises, or fails the Pending with, ApiError.
    """
    fetching = Fetching(
        resources,
        [wanted],
        min_bytes=1,
        max_bytes=wanted.max_bytes,
        max_wait_ms=max_wait_ms,
        committed=committed,
        sendable=False,
    )
    return mapped(fetching.start(), _only)


def _only(reads: list[PartitionRead[ReadFrom]]) -> Slice:
    (read,) = reads
    if read.slice is None:
        raise ApiError(read.error)
    return read.slice


def _divergence(log: Log, asked: PartitionFetch) -> EpochEndOffset | None:
    """Where the reader's log and ours part, if they do."""
    end = leader_epochs.end_offset(log, asked.last_fetched_epoch)
    if end.leader_epoch < 0 or end.end_offset < 0:
        raise ApiError(ErrorCode.OFFSET_OUT_OF_RANGE)
    if end.leader_epoch < asked.last_fetched_epoch or end.end_offset < asked.fetch_offset:
        return end
    return None
