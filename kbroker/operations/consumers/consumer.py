"""A consumer: a member of a group, or a reader of partitions that it is assigned by hand.

It does what Kafka's consumers do, inside the broker and without a clock or a loop of its own: it heartbeats
by itself, reads its partitions fairly, keeps positions and commits them. Its user polls; a poll may wait, and
a newer poll ends it, which then delivers nothing.

    consumer = broker.consumers.open(resources, "group", ConsumerSettings(...))
    consumer.subscribe(resources, ["topic"])
    records = await settled(consumer.poll(resources, max_wait_ms=1000))
    await settled(consumer.commit(resources))
    await settled(consumer.close())

Every call is done as its caller may (`resources`); heartbeats as who made the consumer may.

Invariants:
- A record is delivered by one poll; positions move only with what is delivered.
- A partition that the group takes back is not read any more. It is released when nothing of it is in the
  user's hands: at once, with a commit of all that was delivered, or at the next poll. What is done is
  committed before, with auto commit. So nobody in the group gets it again.
- One that was fenced has lost its partitions: what is committed afterwards for them is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from kbroker.coordinators.groups.errors import UnstableOffsetCommit
from kbroker.coordinators.groups.store import CommittedOffset, TopicPartition
from kbroker.operations.consumers.errors import IllegalState, NoOffset, NotAssigned
from kbroker.operations.consumers.held import Held, SeekTo
from kbroker.operations.consumers.membership import Membership
from kbroker.operations.consumers.settings import OffsetReset
from kbroker.operations.group_offsets import (
    MOST_PARTITIONS,
    NO_MEMBER,
    Fetched,
    Member,
    NewOffset,
    Refusals,
    commit_offsets,
    committed_offsets,
)
from kbroker.operations.offsets import EARLIEST, LATEST, find_offset, visible_end
from kbroker.operations.reading import Fetching, PartitionRead
from kbroker.operations.records import Room, records_of
from kbroker.pending import Pending, wait
from kbroker.protocol.errors import ApiError, ErrorCode
from kbroker.protocol.records import RecordError
from kbroker.requests.long_requests import Steps
from kbroker.security.acls import AclOperation
from kbroker.topics import leader_epochs

if TYPE_CHECKING:
    from kbroker.operations.consumers.settings import ConsumerSettings
    from kbroker.protocol.records import Record
    from kbroker.requests.resources import Resources

MAX_POLL_RECORDS = 10_000
MAX_POLL_BYTES = 8 * 1024 * 1024
_PARTITION_BYTES = 1024 * 1024  # max.partition.fetch.bytes
_BACK_OFF_MS = 100
_AT_ONCE = 500  # partitions that keep others waiting
_AWAY = (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID)


class ConsumedRecord(NamedTuple):
    topic: str
    partition: int
    record: Record


class _Wanted:
    """What is asked of one partition (`reading.PartitionFetch`)."""

    __slots__ = ("fetch_offset", "held", "max_bytes", "partition", "topic")

    current_leader_epoch = last_fetched_epoch = leader_epochs.UNKNOWN

    def __init__(self, held: Held, fetch_offset: int, max_bytes: int) -> None:
        self.held = held
        self.topic = held.topic_key
        self.partition = held.at.partition
        self.fetch_offset = fetch_offset
        self.max_bytes = max_bytes


_Reads = list[PartitionRead[_Wanted]]


class Consumer:
    """``name``, with the group, is what its user finds it by (`Consumers`)."""

    def __init__(
        self,
        resources: Resources,
        group_id: str,
        name: str,
        settings: ConsumerSettings,
        on_close: Callable[[Consumer], None] = lambda consumer: None,
    ) -> None:
        self.group_id = group_id
        self.name = name
        self.settings = settings
        self.principal = resources.principal
        self.topics: tuple[str, ...] = ()
        """What it is subscribed to by name."""
        self.pattern = ""
        self.used_ms = resources.broker.clock()
        """When its user called last."""
        self.closed = False
        self.assignment_changes = 0
        """How often the group has given or taken partitions."""
        self.kept: object = None
        """What the door that made it keeps with it."""
        self.on_out_of_range: Callable[[TopicPartition, int], int] | None = None
        """Asked where to go on when the log does not have the position; None: auto.offset.reset says it."""
        self._broker = resources.broker
        self._maker = resources
        self._on_close = on_close
        self._membership: Membership | None = None
        self._held: dict[TopicPartition, Held] = {}
        self._order: dict[TopicPartition, None] = {}  # the next to be read first
        self._paused: set[TopicPartition] = set()
        self._by_hand = False
        self._polls = 0
        self._polling = False
        self._waiters: dict[Pending[None], None] = {}  # until something changes
        self._committed_ms = self.used_ms
        self._releasing = False

    # what it reads

    def subscribe(self, resources: Resources, topics: Collection[str] = (), pattern: str = "") -> None:
        """To topics by name, or by a pattern (RE2) that matches whole names; in place of what was before."""
        self.touch()
        if self._by_hand:
            raise IllegalState(
                "The consumer has an assignment of its own: a subscription does not go with it."
            )
        if bool(topics) == bool(pattern):
            raise IllegalState("A subscription is to topics or to a pattern: name one of the two.")
        resources.check_group(AclOperation.READ, self.group_id)
        for topic in topics:
            resources.check_topic(AclOperation.READ, topic)
        self.topics, self.pattern = tuple(dict.fromkeys(topics)), pattern
        if self._membership is None:
            self._membership = Membership(
                self._maker,
                self.group_id,
                self.settings,
                on_assignment=self._assignment_changed,
                on_lost=self._assignment_lost,
            )
        self._membership.subscribe(self.topics, pattern)

    def unsubscribe(self) -> Pending[None]:
        """From everything, also from what was assigned by hand. Settles when the group knows it."""
        self.touch()
        committing = self._auto_commit_all()
        result: Pending[None] = Pending()

        def leave(_: object) -> None:
            self.topics, self.pattern, self._by_hand = (), "", False
            self._drop_all()
            if self._membership is None or not self._membership.wanted:
                result.resolve(None)
            else:
                self._membership.leave().then(lambda _: result.resolve(None))

        committing.then(leave)
        return result

    def assign(self, resources: Resources, partitions: Collection[TopicPartition]) -> None:
        """Read exactly these, whatever the group does; in place of what was assigned before."""
        self.touch()
        if self.is_subscribed:
            raise IllegalState("The consumer is subscribed: an assignment of its own does not go with that.")
        if len(partitions) > MOST_PARTITIONS:
            raise IllegalState(f"At most {MOST_PARTITIONS} partitions can be assigned by hand.")
        for topic in {each.topic for each in partitions}:
            resources.check_topic(AclOperation.READ, topic)
        self._by_hand = bool(partitions)
        kept = {at: self._held[at] for at in partitions if at in self._held}
        self._drop_all()
        for at in partitions:
            self._hold(kept.get(at) or Held(at))
        self._change()

    @property
    def is_subscribed(self) -> bool:
        return bool(self.topics or self.pattern)

    @property
    def assignment(self) -> list[TopicPartition]:
        return sorted(at for at, held in self._held.items() if not held.revoked)

    @property
    def paused(self) -> list[TopicPartition]:
        return sorted(self._paused)

    @property
    def member_id(self) -> str | None:
        """In its group; None for one that reads what it is assigned by hand."""
        membership = self._membership
        return membership.member_id if membership is not None and membership.wanted else None

    def assigned(self, *, max_wait_ms: int) -> list[TopicPartition] | Pending[list[TopicPartition]]:
        """The assignment, once the group has given one, at the latest after so long."""
        self.touch()
        deadline = self._broker.clock() + max_wait_ms

        def steps() -> Steps[list[TopicPartition]]:
            while not self._is_assigned() and (left := deadline - self._broker.clock()) > 0:
                yield from wait(self._until_changed(left))
            self._raise_failure()
            return self.assignment

        return self._broker.long_requests.run(steps())

    def pause(self, partitions: Iterable[TopicPartition]) -> None:
        """Read nothing of these until they are resumed."""
        self.touch()
        self._paused.update(held.at for held in self._existing(partitions))
        self._change()

    def resume(self, partitions: Iterable[TopicPartition]) -> None:
        self.touch()
        self._paused.difference_update(partitions)
        self._change()

    # reading

    def poll(
        self,
        resources: Resources,
        *,
        max_wait_ms: int = 0,
        max_records: int = MAX_POLL_RECORDS,
        max_bytes: int = MAX_POLL_BYTES,
    ) -> list[ConsumedRecord] | Pending[list[ConsumedRecord]]:
        """Records of its partitions, in the order of each; as soon as there are any, at the latest after the
        wait. What earlier polls delivered is done with this call.
        """
        self.touch()
        if not self.is_subscribed and not self._by_hand:
            raise IllegalState("The consumer reads nothing: subscribe it, or assign partitions to it.")
        self._raise_failure()
        self._polls += 1
        self._change()  # an older poll ends
        for held in self._held.values():
            held.taken_up()
        self._settle()
        room = Room(min(max_records, MAX_POLL_RECORDS), max_bytes)
        self._polling = True
        number = self._polls
        deadline = self._broker.clock() + max_wait_ms
        result = self._broker.long_requests.run(self._poll(resources, room, deadline, number))
        if not isinstance(result, Pending):
            self._poll_ended(number)
            return result
        polled: Pending[list[ConsumedRecord]] = Pending(lambda: self._abandoned(result, number))

        def settle(settled: Pending[list[ConsumedRecord]]) -> None:
            self._poll_ended(number)
            polled.follow(settled)

        result.then(settle)
        return polled

    def _settle(self) -> None:
        """Something is done: commit it, if it is time, and give back what was kept for it."""
        self._auto_commit_if_due()
        self._release()

    def _abandoned(self, result: Pending[list[ConsumedRecord]], number: int) -> None:
        result.abandon()
        self._poll_ended(number)

    def _poll_ended(self, number: int) -> None:
        if number == self._polls:
            self._polling = False
            self.used_ms = self._broker.clock()

    def _poll(
        self, resources: Resources, room: Room, deadline: int, number: int
    ) -> Steps[list[ConsumedRecord]]:
        while True:
            self._raise_failure()
            yield from self._find_positions(resources)
            left = deadline - self._broker.clock()
            reads = yield from self._fetch(resources, left, room)
            if number != self._polls or self.closed:
                return []
            records = yield from self._take(reads, room, number)
            if number != self._polls or self.closed:
                return []
            if records or left <= 0:
                return records
            if reads is not None and any(read.error for read in reads):
                yield from wait(self._until_changed(min(_BACK_OFF_MS, left)))

    def _fetch(self, resources: Resources, left_ms: int, room: Room) -> Steps[_Reads | None]:
        """None: something has changed meanwhile."""
        wanted: list[_Wanted] = []
        for at in self._order:
            held = self._held[at]
            if held.position is None or held.revoked or at in self._paused:
                continue
            wanted.append(_Wanted(held, held.position, min(_PARTITION_BYTES, room.bytes)))
        if not wanted:
            if left_ms > 0:
                yield from wait(self._until_changed(left_ms))
            return None
        fetching = Fetching(
            resources,
            wanted,
            min_bytes=self.settings.fetch_min_bytes,
            max_bytes=min(room.bytes, MAX_POLL_BYTES),
            max_wait_ms=left_ms,
            committed=self.settings.read_committed,
            sendable=False,
        ).start()
        if not isinstance(fetching, Pending):
            return fetching
        return (yield from wait(self._unless_changed(fetching)))

    def _take(self, reads: _Reads | None, room: Room, number: int) -> Steps[list[ConsumedRecord]]:
        """Decode what was read and let the positions move past it, if they are still where they were."""
        taken: list[tuple[Held, int, int, list[Record]]] = []
        damage: RecordError | None = None
        held_bytes = sum(read.slice.size_bytes for read in reads or () if read.slice is not None)
        self._broker.budget.take(held_bytes)
        try:
            for read in reads or ():
                held = read.asked.held
                if self._held.get(held.at) is not held or held.position != read.asked.fetch_offset:
                    continue
                if read.slice is None:
                    self._read_failed(held, read.error)
                elif not room.full:
                    begin = read.asked.fetch_offset
                    try:
                        found, end = yield from records_of(
                            self._broker, read.slice, begin, room, committed=self.settings.read_committed
                        )
                    except RecordError as error:
                        damage = error
                    else:
                        taken.append((held, begin, end, found))
        finally:
            self._broker.budget.give_back(held_bytes)
        if number != self._polls or self.closed:
            return []
        records: list[ConsumedRecord] = []
        for held, begin, end, found in taken:
            at = held.at
            if self._held.get(at) is not held or held.revoked or held.position != begin:
                continue  # given away, or moved by a seek
            held.advance(end, delivered=bool(found))
            if found:
                records += [ConsumedRecord(at.topic, at.partition, record) for record in found]
                self._order[at] = self._order.pop(at)  # the others go first next time
        if damage is not None and not records:
            raise damage  # of one partition: the others are read as long as they have anything
        return records

    def _read_failed(self, held: Held, code: ErrorCode) -> None:
        if code is ErrorCode.OFFSET_OUT_OF_RANGE:
            if self.on_out_of_range is None or held.position is None:
                self._reset(held)
            else:
                held.begin(self.on_out_of_range(held.at, held.position), held.committed)
        elif code is ErrorCode.CORRUPT_MESSAGE or not (code in _AWAY or code.retriable):
            raise ApiError(code, f"Partition {held.at.partition} of {held.at.topic} cannot be read.")

    # for users that take what a poll returned one by one

    def through_with(self, offsets: Mapping[TopicPartition, int]) -> None:
        """The user has done with what lies before these offsets: it may be committed, without a poll."""
        self.touch()
        for at, offset in offsets.items():
            held = self._held.get(at)
            if held is not None:
                held.through_with(offset)
        self._settle()

    def hand_back(self, offsets: Mapping[TopicPartition, int]) -> None:
        """The user does not take what the last poll returned from these offsets on. It comes again: by the
        next poll, or, of partitions that the group takes back, to who has them then.
        """
        self.touch()
        for at, offset in offsets.items():
            held = self._held.get(at)
            if held is not None:
                held.hand_back(offset)
        self._release()

    # positions

    def seek(self, at: TopicPartition, offset: int) -> None:
        """Let the next poll go on here."""
        self.seek_all({at: offset})

    def seek_all(self, offsets: Mapping[TopicPartition, int]) -> None:
        """The same for several partitions: for all, or if one is not assigned for none."""
        self.touch()
        for held in self._existing(offsets):
            held.seek(offsets[held.at])
        self._change()

    def seek_to(self, partitions: Iterable[TopicPartition], which: SeekTo) -> None:
        self.touch()
        for held in self._existing(partitions):
            held.seek_to_end_of_log(which)
        self._change()

    def seek_to_committed(self, partitions: Iterable[TopicPartition]) -> None:
        """Let the next poll deliver again what was delivered and not committed."""
        self.touch()
        for held in self._existing(partitions):
            held.position, held.seek_to, held.delivered = None, None, False
        self._change()

    def position(self, resources: Resources, at: TopicPartition) -> int | Pending[int]:
        """Where the next poll goes on."""
        self.touch()
        (held,) = self._existing([at])

        def steps() -> Steps[int]:
            if held.position is None:
                yield from self._find_positions(resources, only=held)
            if held.position is None:
                raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "There is no such partition.")
            return held.position

        return self._broker.long_requests.run(steps())

    def _find_positions(self, resources: Resources, only: Held | None = None) -> Steps[None]:
        """Committed offsets, or what auto.offset.reset says where there are none."""
        unknown = [
            held
            for held in ([only] if only is not None else self._held.values())
            if held.position is None and not held.revoked
        ]
        unread = [held.at for held in unknown if held.seek_to is None]
        committed: Fetched = {}
        for start in range(0, len(unread), _AT_ONCE):
            some = unread[start : start + _AT_ONCE]
            fetched = committed_offsets(resources, self.group_id, some, require_stable=True)
            committed |= (yield from wait(fetched)) if isinstance(fetched, Pending) else fetched
            yield None
        for held in unknown:
            if held.position is not None or self._held.get(held.at) is not held:
                continue
            if held.seek_to is None:
                found = committed.get(held.at)
                if isinstance(found, CommittedOffset):
                    held.begin(found.offset, found.offset)
                    continue
                if isinstance(found, UnstableOffsetCommit):
                    self._broker.scheduler.after(_BACK_OFF_MS, self._change)
                    continue
                if found is not None:
                    raise found
                self._reset(held)
            yield from self._find_end(resources, held)

    def _reset(self, held: Held) -> None:
        reset = self.settings.auto_offset_reset
        if reset is OffsetReset.NONE:
            raise NoOffset(*held.at)
        held.seek_to_end_of_log(SeekTo.BEGINNING if reset is OffsetReset.EARLIEST else SeekTo.END)

    def _find_end(self, resources: Resources, held: Held) -> Steps[None]:
        which = held.seek_to
        try:
            topic = resources.topic(held.topic_key, AclOperation.READ)
            log = resources.log_of(topic, held.at.partition)
        except ApiError as error:
            if error.code in _AWAY:
                return
            raise
        refreshed = log.refresh()
        if refreshed is not None:
            yield from wait(refreshed)
        end = visible_end(log, committed=self.settings.read_committed)
        found = find_offset(log, EARLIEST if which is SeekTo.BEGINNING else LATEST, end)
        if isinstance(found, Pending):
            found = yield from wait(found)
        if held.seek_to is which and found is not None:
            held.begin(found.offset, held.committed)

    # commits

    def commit(
        self, resources: Resources, offsets: Sequence[NewOffset] | None = None
    ) -> Refusals | Pending[Refusals]:
        """These offsets, or the positions: all that was delivered. What is refused, by partition."""
        self.touch()
        if not self.group_id:
            raise IllegalState("A consumer without a group has nowhere to commit to.")
        if offsets is None:
            offsets = self._positions()

        def steps() -> Steps[Refusals]:
            return (yield from self._commit(resources, offsets))

        return self._broker.long_requests.run(steps())

    def _positions(self) -> list[NewOffset]:
        return [
            NewOffset(at.topic, at.partition, held.position)
            for at, held in self._held.items()
            if held.position is not None and held.position != held.committed
        ]

    def _commit(self, resources: Resources, offsets: Sequence[NewOffset]) -> Steps[Refusals]:
        refusals: Refusals = {}
        for start in range(0, len(offsets), _AT_ONCE):
            some = offsets[start : start + _AT_ONCE]
            refusals |= yield from self._commit_some(resources, some)
            yield None
        self._release()
        return refusals

    def _commit_some(self, resources: Resources, offsets: Sequence[NewOffset]) -> Steps[Refusals]:
        membership = self._membership if self.is_subscribed else None
        member = NO_MEMBER
        refusals: Refusals = {}
        if membership is not None and membership.wanted:
            yield from wait(membership.when_answered())
            self._raise_failure()
            member = membership.member
            lost = {at for new in offsets if (at := _at(new)) not in self._held}
            refusals.update((at, NotAssigned(*at)) for at in lost)
            offsets = [new for new in offsets if _at(new) not in lost]
        if not offsets:
            return refusals
        now_ms = self._broker.clock()
        stored = commit_offsets(resources, self.group_id, offsets, member=member, now_ms=now_ms)
        refusals |= (yield from wait(stored)) if isinstance(stored, Pending) else stored
        for new in offsets:
            held = self._held.get(_at(new))
            if held is not None and held.at not in refusals:
                held.stored(new.offset)
        return refusals

    def standing(self, offsets: Sequence[NewOffset] | None = None) -> Steps[tuple[Member, list[NewOffset]]]:
        """Who it is in its group, and its positions or these offsets, to be committed with a transaction."""
        self.touch()
        if self.settings.auto_commit:
            raise IllegalState(
                "The consumer commits by itself: one whose offsets are committed in transactions must not."
            )
        if not self.group_id:
            raise IllegalState("A consumer without a group has nowhere to commit to.")
        member = NO_MEMBER
        membership = self._membership
        if membership is not None and membership.wanted:
            yield from wait(membership.when_answered())
            self._raise_failure()
            member = membership.member
        if offsets is None:
            return member, self._positions()
        for new in offsets:
            if _at(new) not in self._held:
                raise NotAssigned(*_at(new))
        return member, list(offsets)

    def committed_in_transaction(self, offsets: Iterable[NewOffset]) -> None:
        """A transaction has committed these offsets for it."""
        for new in offsets:
            held = self._held.get(_at(new))
            if held is not None:
                held.stored(new.offset)
        self._release()

    def committed(
        self, resources: Resources, partitions: Sequence[TopicPartition]
    ) -> Fetched | Pending[Fetched]:
        """What its group has committed, be it by this consumer or another."""
        self.touch()
        return committed_offsets(resources, self.group_id, partitions, require_stable=False)

    def _auto_commit_if_due(self) -> None:
        now_ms = self._broker.clock()
        if now_ms - self._committed_ms >= self.settings.auto_commit_interval_ms:
            self._committed_ms = now_ms
            self._auto_commit_done(self._held.values())

    def _auto_commit_done(self, those: Iterable[Held]) -> Pending[None]:
        """Commit what is done of them; settles in any case."""
        offsets = [
            NewOffset(held.at.topic, held.at.partition, held.uncommitted)
            for held in those
            if held.uncommitted is not None
        ]
        finished: Pending[None] = Pending()
        if not self.settings.auto_commit or not self.group_id or not offsets:
            finished.resolve(None)
            return finished
        committing = self._broker.long_requests.run(self._commit(self._maker, offsets))
        if isinstance(committing, Pending):
            committing.then(lambda _: finished.resolve(None))
        else:
            finished.resolve(None)
        return finished

    def _auto_commit_all(self) -> Pending[None]:
        """The user ends it: all that was delivered is done."""
        for held in self._held.values():
            held.taken_up()
        return self._auto_commit_done(self._held.values())

    # what the group gives and takes

    def _assignment_changed(self) -> None:
        self.assignment_changes += 1
        membership = self._membership
        assert membership is not None
        assigned: set[TopicPartition] = set()
        for topic_id, partitions in membership.assigned.items():
            topic = self._maker.find_topic(topic_id, AclOperation.DESCRIBE)
            if topic is None:
                continue  # it is gone, and the group will hear of it
            for partition in partitions:
                at = TopicPartition(topic.name, partition)
                assigned.add(at)
                held = self._held.get(at)
                if held is None or held.topic_id != topic_id:
                    self._hold(Held(at, topic_id))
                else:
                    held.revoked = False
        for at, held in self._held.items():
            if at not in assigned:
                held.revoked = True
        self._release()
        self._change()

    def _assignment_lost(self) -> None:
        self.assignment_changes += 1
        self._drop_all()
        self._change()

    def _release(self) -> None:
        """Give back what the group wants back and the user has done with."""
        membership = self._membership
        if self._releasing or membership is None or not membership.joined:
            return
        ready = [held for held in self._held.values() if held.revoked and not held.delivered]
        unstored = (
            [held for held in ready if held.uncommitted is not None] if self.settings.auto_commit else []
        )
        if not unstored:
            self._give_back(ready)
            return
        self._releasing = True

        def go_on(_: object) -> None:
            self._releasing = False
            self._give_back([held for held in ready if not held.delivered])
            self._release()

        self._auto_commit_done(unstored).then(go_on)

    def _give_back(self, those: Iterable[Held]) -> None:
        for held in those:
            if held.revoked and self._held.get(held.at) is held:
                self._let_go(held.at)
        membership = self._membership
        if membership is None or not membership.joined:
            return
        owned: dict[bytes, set[int]] = {topic_id: set(each) for topic_id, each in membership.assigned.items()}
        for held in self._held.values():
            if held.revoked and held.topic_id is not None:
                owned.setdefault(held.topic_id, set()).add(held.at.partition)
        membership.own(owned)

    def _hold(self, held: Held) -> None:
        self._held[held.at] = held
        self._order[held.at] = None

    def _let_go(self, at: TopicPartition) -> None:
        del self._held[at]
        del self._order[at]
        self._paused.discard(at)

    def _drop_all(self) -> None:
        self._held.clear()
        self._order.clear()
        self._paused.clear()

    # its life

    def touch(self) -> None:
        """Its user is there."""
        if self.closed:
            raise IllegalState("The consumer is closed.")
        self.used_ms = self._broker.clock()
        membership = self._membership
        if membership is not None and self.is_subscribed and membership.failure is not None:
            return  # it is told first
        if membership is not None and self.is_subscribed and not membership.wanted:
            membership.subscribe(self.topics, self.pattern)

    @property
    def idle_since_ms(self) -> int | None:
        """Since when nobody uses it; None while a poll waits."""
        return None if self._polling else self.used_ms

    def close(self) -> Pending[None]:
        """Commit what was delivered, if it commits by itself, and leave the group."""
        return self._close(self._auto_commit_all)

    def expire(self) -> Pending[None]:
        """The same for one whose user is gone: what the last poll delivered may not be done."""
        return self._close(lambda: self._auto_commit_done(self._held.values()))

    def _close(self, commit: Callable[[], Pending[None]]) -> Pending[None]:
        result: Pending[None] = Pending()
        if self.closed:
            result.resolve(None)
            return result
        committing = commit()
        self.closed = True
        self._polls += 1
        self._change()
        self._on_close(self)

        def leave(_: object) -> None:
            self._drop_all()
            if self._membership is None:
                result.resolve(None)
            else:
                self._membership.leave().then(lambda _: result.resolve(None))

        committing.then(leave)
        return result

    # waiting

    def _is_assigned(self) -> bool:
        membership = self._membership
        return self._by_hand or membership is None or not membership.wanted or bool(membership.assigned)

    def _raise_failure(self) -> None:
        """What ended the membership, once; the next call joins again."""
        membership = self._membership
        if membership is not None and membership.failure is not None:
            failure, membership.failure = membership.failure, None
            raise failure

    def _existing(self, partitions: Iterable[TopicPartition]) -> list[Held]:
        found = []
        for at in partitions:
            held = self._held.get(at)
            if held is None or held.revoked:
                raise NotAssigned(*at)
            found.append(held)
        return found

    def _change(self) -> None:
        """Who waits looks again."""
        waiters, self._waiters = self._waiters, {}
        for waiter in waiters:
            waiter.resolve(None)

    def _until_changed(self, at_most_ms: int) -> Pending[None]:
        """Until something changes that a poll depends on, or so long."""
        cancel: Callable[[], None] | None = None

        def stop() -> None:
            self._waiters.pop(woken, None)
            if cancel is not None:
                cancel()

        def due() -> None:
            nonlocal cancel
            cancel = None
            if not woken.done:
                woken.resolve(None)

        woken: Pending[None] = Pending(stop)
        woken.then(lambda _: stop())
        self._waiters[woken] = None
        cancel = self._broker.scheduler.after(at_most_ms, due)
        return woken

    def _unless_changed(self, fetching: Pending[_Reads]) -> Pending[_Reads | None]:
        """What is fetched, or None when something changes first."""
        woken: Pending[None] = Pending()

        def stop() -> None:
            self._waiters.pop(woken, None)
            fetching.abandon()

        def changed(_: object) -> None:
            fetching.abandon()
            result.resolve(None)

        def arrived(settled: Pending[_Reads]) -> None:
            self._waiters.pop(woken, None)
            try:
                result.resolve(settled.result())
            except Exception as error:
                result.fail(error)

        result: Pending[_Reads | None] = Pending(stop)
        self._waiters[woken] = None
        woken.then(changed)
        fetching.then(arrived)
        return result


def _at(new: NewOffset) -> TopicPartition:
    return TopicPartition(new.topic, new.partition)
