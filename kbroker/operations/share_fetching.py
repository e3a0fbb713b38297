"""Fetching for a share group: read what may be acquired, acquire it, and wait until there is something.

Invariants:
- Records are acquired when the fetch is about to be answered, and at no other time: a fetch that waits, or
  that nobody waits for any more, holds none.
- While a fetch reads for a share partition, others pass it by; they are woken when it is done.
- max_records bounds all partitions together, but for the rest of a batch where the mode says so. max_bytes is
  divided evenly between the partitions that have something.
- A session that has ended acquires nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from kbroker.coordinators.shares.partition import Acquired, AcquireMode
from kbroker.coordinators.shares.store import NotOwner, ShareKey
from kbroker.errors import error_code
from kbroker.operations.reading import Fetching, PartitionRead
from kbroker.operations.share_batches import ReadBatches
from kbroker.pending import Pending, after, join, wait
from kbroker.protocol.errors import ApiError, ErrorCode
from kbroker.security.acls import AclOperation
from kbroker.storage.errors import OffsetOutOfRange, StorageError
from kbroker.storage.interface import WantedRead
from kbroker.storage.trace_events import FETCHED
from kbroker.topics import leader_epochs

if TYPE_CHECKING:
    from collections.abc import Callable

    from kbroker.coordinators.shares.partition import Change
    from kbroker.requests.long_requests import Steps
    from kbroker.requests.resources import Resources, TopicKey
    from kbroker.requests.share_sessions import Partition, ShareSession
    from kbroker.shares.live import LiveShare
    from kbroker.shares.registry import Shares
    from kbroker.storage.interface import Log, Slice

_LEAST_READ_BYTES = 64 * 1024
_OPENED_AT_ONCE = 100  # partitions, before others have their turn
_SPARE = 1.25  # more than the records are thought to need, since they differ in size


class ShareLimits(NamedTuple):
    min_bytes: int
    max_bytes: int
    max_wait_ms: int
    max_records: int
    batch_size: int
    mode: AcquireMode


class SharePartitionFetch:
    """What one partition is asked for, and what came of it."""

    __slots__ = (
        "acquired",
        "error",
        "fetch_offset",
        "key",
        "live",
        "max_bytes",
        "partition",
        "records",
        "topic",
    )

    current_leader_epoch: int = leader_epochs.UNKNOWN
    last_fetched_epoch: int = leader_epochs.UNKNOWN

    def __init__(self, key: Partition) -> None:
        self.key = key
        self.topic: TopicKey = key[0]
        self.partition = key[1]
        self.fetch_offset = 0
        self.max_bytes = 0
        self.live: LiveShare | None = None
        self.error: Exception | None = None  # why it could not be opened
        self.acquired: Sequence[Acquired] = ()
        self.records: Sequence[memoryview] = ()

    def has_something(self, *, committed: bool) -> bool:
        live = self.live
        return live is not None and (live.closed or live.has_something(committed=committed))


ShareReads = list[PartitionRead[SharePartitionFetch]]


def fetch(
    resources: Resources,
    shares: Shares,
    session: ShareSession,
    partitions: Sequence[Partition],
    limits: ShareLimits,
    may_send: Callable[[int], bool] | None = None,
) -> ShareReads | Pending[ShareReads]:
    """Acquire records of these partitions for the session's member.

    ``may_send``: whether so many bytes may go out; asked before records are acquired.
    """
    asked = [SharePartitionFetch(each) for each in partitions]

    def begin(_: object = None) -> ShareReads | Pending[ShareReads]:
        return ShareFetching(resources, shares, session, asked, limits, may_send).start()

    def open_one(each: SharePartitionFetch) -> Pending[None] | None:
        return _open(resources, shares, session.group_id, each)

    opened: object
    if len(asked) <= _OPENED_AT_ONCE:
        opened = join(list(map(open_one, asked)), lambda _: None)
    else:
        opened = resources.broker.long_requests.run(_open_in_steps(asked, open_one))
    return after(opened, begin) if isinstance(opened, Pending) else begin()


def _open_in_steps(
    asked: Sequence[SharePartitionFetch], open_one: Callable[[SharePartitionFetch], Pending[None] | None]
) -> Steps[None]:
    """All of them; others have their turn in between."""
    opening: list[Pending[None]] = []
    for each in asked:
        later = open_one(each)
        if later is not None:
            opening.append(later)
        yield None
    for later in opening:
        yield from wait(later)


def _open(
    resources: Resources, shares: Shares, group_id: str, asked: SharePartitionFetch
) -> Pending[None] | None:
    key = ShareKey(group_id, *asked.key)
    asked.live = shares.get(key)
    if asked.live is not None:
        return None
    try:
        log = resources.log_of(resources.topic(asked.topic, AclOperation.READ), asked.partition)
        opening = shares.open(key, log)
    except (ApiError, StorageError) as error:
        asked.error = error
        return None
    if not isinstance(opening, Pending):
        asked.live = opening
        return None
    opened: Pending[None] = Pending(opening.abandon)

    def arrived(opening: Pending[LiveShare]) -> None:
        try:
            asked.live = opening.result()
        except Exception as error:
            asked.error = error
        opened.resolve(None)

    opening.then(arrived)
    return opened


class ShareFetching(Fetching[SharePartitionFetch]):
    """One share fetch under way. Its result is the same in every attempt: what came of each partition."""

    def __init__(
        self,
        resources: Resources,
        shares: Shares,
        session: ShareSession,
        partitions: Sequence[SharePartitionFetch],
        limits: ShareLimits,
        may_send: Callable[[int], bool] | None,
    ) -> None:
        settings = shares.settings(session.group_id)
        super().__init__(
            resources,
            partitions,
            min_bytes=limits.min_bytes,
            max_bytes=limits.max_bytes,
            max_wait_ms=limits.max_wait_ms,
            committed=settings.reads_committed,
            sendable=False,  # the borders of batches are looked at
        )
        self._shares = shares
        self._session = session
        self._limits = limits
        self._may_send = may_send
        self._most_records = min(limits.max_records, settings.partition_max_record_locks)
        self._errors = 0
        self._over = False  # there is something to tell, though nothing was acquired
        self._passed = False  # what was read is not for anybody, what follows may be

    def start(self) -> ShareReads | Pending[ShareReads]:
        try:
            return super().start()
        except Exception:
            self._finish()
            raise

    # one attempt

    def _attempt(self) -> bool:
        self._resources.check_group(AclOperation.READ, self._session.group_id)
        self._errors = 0
        ready = sum(map(self._has_something, self._asked))
        for each in self._asked:
            each.max_bytes = self._max_bytes // max(ready, 1)
        return super()._attempt()

    def _has_something(self, asked: SharePartitionFetch) -> bool:
        return self._may_acquire(asked) and asked.has_something(committed=self._committed)

    def _may_acquire(self, asked: SharePartitionFetch) -> bool:
        session = self._session
        return self._shares.rights.may_acquire(session.group_id, session.member_id, asked.key)

    def _wanted(self) -> Iterator[WantedRead]:
        for asked in self._asked:
            live = asked.live
            if live is not None and not live.closed and self._has_something(asked):
                offset = live.partition.next_fetch_offset() or 0
                yield WantedRead(live.log, offset, self._read_bytes(live, asked.max_bytes))

    def _begin(self, asked: SharePartitionFetch) -> PartitionRead[SharePartitionFetch]:
        read = PartitionRead(asked)
        try:
            topic = read.topic = self._resources.topic(asked.topic, AclOperation.READ)
            log = self._resources.log_of(topic, asked.partition)
            if asked.live is None:
                raise asked.error or ApiError(ErrorCode.UNKNOWN_SERVER_ERROR)
        except Exception as error:
            self._fail(read, error)
            return read
        if asked.live.closed:
            self._over = True  # the next fetch opens it anew
        elif self._has_something(asked):
            asked.live.reader = self
            asked.fetch_offset = asked.live.partition.next_fetch_offset() or 0
            read.log = log
        return read

    def _read(self, log: Log, asked: SharePartitionFetch) -> Slice | Pending[Slice]:
        assert asked.live is not None
        room = max(0, min(self._read_bytes(asked.live, asked.max_bytes), self._limit - self._size))
        return log.read(asked.fetch_offset, room, committed=self._committed, min_one=self._size == 0)

    def _read_bytes(self, live: LiveShare, most: int) -> int:
        """About what the records need that may be acquired: the rest would be read for nothing."""
        expected = int(live.record_bytes * self._most_records * _SPARE)
        return min(most, max(expected, _LEAST_READ_BYTES, self._min_bytes))

    def _fail(self, read: PartitionRead[SharePartitionFetch], error: Exception) -> None:
        read.log = None
        live = read.asked.live
        if isinstance(error, OffsetOutOfRange) and live is not None:
            moved = live.partition.log_start_moved(live.log.log_start_offset, self._shares.clock())
            self._shares.store_unwatched([(live, moved)])
            self._shares.arm(live)
            self._over = True
            return
        code = ErrorCode.NOT_LEADER_OR_FOLLOWER if isinstance(error, NotOwner) else error_code(error)
        if code is None:
            raise error
        read.error = code
        self._errors += 1
        self._failed = self._errors == len(self._asked)

    # acquiring

    def _is_enough(self) -> bool:
        over = self._over or self._session.ended
        if not over and not super()._is_enough():
            self._let_go()
            return False
        acquired = self._size > 0 and not self._session.ended and self._may_go_out() and self._acquire()
        self._let_go()
        return over or acquired or self._over or self._final or self._failed

    def _tell_traces(self) -> None:
        attributes = self._resources.of_caller()
        for read in self._reads:
            trace = None if read.log is None else read.log.trace
            for first, last, count in read.asked.acquired if trace is not None else ():
                assert trace is not None
                delivered = {"group": self._session.group_id, "member": self._session.member_id}
                trace.happened(FETCHED, first, last, {**attributes, **delivered, "deliveryCount": count})

    def _may_go_out(self) -> bool:
        if self._may_send is None or self._may_send(self._size):
            return True
        self._over = True  # the client waits before it asks again
        return False

    def _acquire(self) -> bool:
        left = self._limits.max_records
        changes: list[tuple[LiveShare, Change | None]] = []
        for read in self._reads:
            live, got = read.asked.live, read.slice
            if left <= 0 or live is None or live.closed or got is None or not got.size_bytes:
                continue
            if not self._may_acquire(read.asked):
                continue
            found = ReadBatches(got)
            acquired, change = live.partition.acquire(
                self._session.member_id,
                found.batches,
                fetch_offset=read.asked.fetch_offset,
                max_records=left,
                batch_size=self._limits.batch_size,
                mode=self._limits.mode,
                aborted=found.aborted(got.aborted),
                now_ms=self._shares.clock(),
            )
            offsets = found.batches[-1].last_offset - found.batches[0].first_offset + 1
            live.record_bytes = got.size_bytes / offsets
            changes.append((live, change))
            if acquired:
                self._shares.counts[live.key.group_id].delivered(acquired)
                read.asked.acquired = acquired
                read.asked.records = found.holding(acquired)
                left -= sum(each.last_offset - each.first_offset + 1 for each in acquired)
                self._shares.arm(live)
            elif live.partition.next_fetch_offset() != read.asked.fetch_offset:
                self._passed = True
        self._shares.store_unwatched(changes)
        return left < self._limits.max_records

    def _let_go(self) -> None:
        for read in self._reads:
            if read.asked.live is not None:
                read.asked.live.let_go(self)

    # waiting

    def _wait(self) -> None:
        super()._wait()
        if self._passed:
            self._passed = False
            self._wake()

    def _watch(self) -> None:
        for asked in self._asked:
            if asked.live is not None:
                self._unwatch.append(asked.live.log.watch(self._wake))
                self._unwatch.append(asked.live.watch(self._wake))

    def _look(self) -> None:
        if not self._waits:
            return
        self._woken = False
        if any(map(self._has_something, self._asked)):
            self._again()

    def _finish(self) -> None:
        super()._finish()
        self._let_go()
