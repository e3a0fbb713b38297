"""A transactional producer inside the broker: what Kafka's producer does in a transaction, below the wire.

It speaks as a producer of transaction version 2 (KIP-890): partitions and groups become part of the
transaction with what is written to them first, sequences begin at 0 in each of them, and the end of the
transaction raises the epoch.

Its calls come one after the other. After a failed one nobody knows how far it got: the transaction is aborted
then.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from kbroker.coordinators.transactions.errors import ConcurrentTransactions
from kbroker.coordinators.transactions.transaction import EPOCH_BUMP_VERSION, TopicPartition
from kbroker.operations.appending import append
from kbroker.operations.batching import Batch, Producer, batches
from kbroker.operations.group_offsets import MOST_PARTITIONS, Member, NewOffset, commit_request
from kbroker.operations.publishing import Place, Published, durable
from kbroker.pending import Pending, wait
from kbroker.protocol.errors import ApiError, ErrorCode
from kbroker.protocol.records import increment_sequence, read_header
from kbroker.security.acls import AclOperation
from kbroker.topics.names import OFFSETS_TOPIC
from kbroker.transactions.offsets_partition import partition_of_group
from kbroker.transactions.writes import ClientKnows, TransactionalBatch

if TYPE_CHECKING:
    from kbroker.coordinators.transactions.transaction import ProducerIdAndEpoch
    from kbroker.requests.long_requests import Steps
    from kbroker.requests.resources import Resources
    from kbroker.storage.interface import Appended, Log

_KNOWS: Final = ClientKnows(adding=True, transaction_abortable=True)
_AGAIN_MS: Final = 20
_ATTEMPTS: Final = 50
_TURN: Final = 500  # records looked at between two pauses

_Written = list[tuple[Place, "Log", list[Batch]]]


def take_over(resources: Resources, transactional_id: str, timeout_ms: int) -> Steps[ProducerIdAndEpoch]:
    """The producer id and epoch to write with; whoever had the transactional id before is fenced, and what
    they left open is aborted first.
    """
    broker = resources.broker
    for attempt in range(1, _ATTEMPTS + 1):
        begun = resources.own_transactions().init_producer_id(
            transactional_id, timeout_ms, None, broker.clock()
        )
        try:
            return (yield from wait(begun))
        except ConcurrentTransactions:
            if attempt == _ATTEMPTS:
                raise
        pause: Pending[None] = Pending()
        broker.scheduler.after(_AGAIN_MS, lambda pause=pause: pause.resolve(None))  # type: ignore[misc]
        yield from wait(pause)
    raise AssertionError


class TransactionalProducer:
    """In one transaction. Who may use the transactional id is its user's affair; who may write to a topic and
    commit for a group is looked at here.
    """

    __slots__ = ("_sequences", "begun", "producer", "transactional_id")

    def __init__(self, transactional_id: str, producer: ProducerIdAndEpoch) -> None:
        self.transactional_id = transactional_id
        self.producer = producer
        self.begun = False
        """Whether anything may be part of the transaction."""
        self._sequences: dict[tuple[bytes, int], int] = {}  # the next ones, by topic id and partition

    def write(
        self, resources: Resources, places: Sequence[Place], count: int, *, now_ms: int, codec: int
    ) -> Steps[list[Published]]:
        """Where these records, ``count`` in all, are now, in their order."""
        broker = resources.broker
        written = yield from self._batches(resources, places, codec)
        held = sum(len(batch.data) for _, _, made in written for batch in made)
        broker.budget.set_aside(held)
        try:
            yield from self._admitted(resources, written, now_ms)
            appended: list[tuple[Place, int, Batch, Appended]] = []
            for place, log, made in written:
                done = 0
                for batch in made:
                    each = yield from append(broker, log, batch.data, now_ms)
                    appended.append((place, done, batch, each))
                    done += len(batch.records)
                self._move_on(place, done)
            assigned = []
            for place, done, batch, each in appended:
                assigned.append((place, done, batch, (yield from durable(each))))
        finally:
            broker.budget.take_up(held)
        return (yield from told(assigned, count))

    def add_group(self, resources: Resources, group_id: str) -> Steps[None]:
        """Make the group's offsets part of the transaction."""
        resources.check_group(AclOperation.READ, group_id)
        broker = resources.broker
        partition = partition_of_group(broker, group_id)
        self.begun = True
        added = resources.own_transactions().add_partitions(
            self.transactional_id,
            self.producer,
            [TopicPartition(OFFSETS_TOPIC, partition)],
            EPOCH_BUMP_VERSION,
            broker.clock(),
        )
        yield from wait(added)

    def add_offsets(
        self, resources: Resources, group_id: str, offsets: Sequence[NewOffset], member: Member
    ) -> Steps[None]:
        """Offsets of a group that count when the transaction commits. All of them, or it raises."""
        groups = resources.groups(group_id, AclOperation.READ)
        if len(offsets) > MOST_PARTITIONS:
            raise ApiError(
                ErrorCode.INVALID_REQUEST, f"At most {MOST_PARTITIONS} offsets at a time: add them in parts."
            )
        for topic in {new.topic for new in offsets}:
            resources.check_topic(AclOperation.READ, topic)
        yield from self.add_group(resources, group_id)
        errors = yield from wait(
            groups.offsets.commit_in_transaction(
                self.producer.producer_id,
                commit_request(group_id, offsets, member),
                resources.broker.clock(),
            )
        )
        for error in errors.values():
            raise error

    def end(self, resources: Resources, *, commit: bool) -> Steps[ProducerIdAndEpoch]:
        """Returns what the transactional id goes on with."""
        ended = resources.own_transactions().end_transaction(
            self.transactional_id,
            self.producer,
            commit=commit,
            version=EPOCH_BUMP_VERSION,
            now_ms=resources.broker.clock(),
        )
        return (yield from wait(ended))

    def _batches(self, resources: Resources, places: Sequence[Place], codec: int) -> Steps[_Written]:
        written: _Written = []
        for place in places:
            log = resources.log_of(place.topic, place.partition)
            sequence = self._sequences.get((place.topic.topic_id, place.partition), 0)
            made = yield from batches(
                resources.broker.worker,
                place.records,
                log.config.max_message_bytes,
                codec,
                Producer(*self.producer, sequence, transactional=True),
            )
            written.append((place, log, made))
        return written

    def _admitted(self, resources: Resources, written: _Written, now_ms: int) -> Steps[None]:
        """The partitions are part of the transaction."""
        first = [
            TransactionalBatch(place.topic, place.partition, log, read_header(made[0].data))
            for place, log, made in written
        ]
        self.begun = True
        refusals = resources.broker.transactional_writes.admit(self.transactional_id, first, _KNOWS, now_ms)
        if isinstance(refusals, Pending):
            refusals = yield from wait(refusals)
        for refusal in refusals.values():
            raise refusal

    def _move_on(self, place: Place, count: int) -> None:
        key = (place.topic.topic_id, place.partition)
        self._sequences[key] = increment_sequence(self._sequences.get(key, 0), count)


def told(appended: Sequence[tuple[Place, int, Batch, Appended]], count: int) -> Steps[list[Published]]:
    """What became of so many records that are all published, in their order."""
    outcomes: list[Published] = [None] * count  # type: ignore[list-item]
    for place, first, batch, each in appended:
        offset, append_time = each.base_offset, each.log_append_time_ms
        for begin in range(0, len(batch.records), _TURN):
            some = batch.records[begin : begin + _TURN]
            indexes = place.indexes[first + begin : first + begin + len(some)]
            for index, record in zip(indexes, some, strict=True):
                timestamp = record.timestamp if append_time < 0 else append_time
                outcomes[index] = Published(place.partition, offset, timestamp)
                offset += 1
            yield None
    return outcomes
