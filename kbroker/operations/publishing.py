"""Plain records published: given their partitions, made into batches, appended, durable as acks asks for.

One batch per partition, or several where one would exceed max.message.bytes. Each partition succeeds or fails
by itself; of one that failed in the middle, the records before that are published and told as such.

With an expected offset all records go into one partition as one batch, and only if the first of them gets
that offset: the log itself decides that, where it gives offsets (see `Log.append_as_leader`). Of writers who
expect the same offset exactly one succeeds.

With an origin the records are those of an idempotent producer: the log recognises what it has, even after
`kill -9` (`origins.py`). They go into one partition as one batch, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from kbroker.operations.appending import append
from kbroker.operations.batching import NO_PRODUCER, Batch, Producer, batches
from kbroker.operations.partitioning import partition_of_key
from kbroker.operations.topics import topic_to_write
from kbroker.pending import Pending, wait
from kbroker.protocol.errors import ApiError, ErrorCode
from kbroker.protocol.records.codec import NO_TIMESTAMP, Record
from kbroker.protocol.records.compression import NONE

if TYPE_CHECKING:
    from kbroker.requests.long_requests import Steps
    from kbroker.requests.resources import Resources
    from kbroker.storage.interface import Appended
    from kbroker.topics.registry import Topic

ACKS_ALL: Final = -1
_HELD_UNCOUNTED: Final = 64 * 1024  # bytes of batches that need not be accounted for
_TURN: Final = 500  # records looked at between two pauses


class NewRecord(NamedTuple):
    record: Record
    """Its timestamp may be missing (-1): it gets the time of its publishing."""
    partition: int | None = None
    """None: its key decides, or whose turn it is."""


class Published(NamedTuple):
    partition: int
    offset: int
    """-1: not known, because nobody waited for it (acks=0)."""
    timestamp: int


class Refused(NamedTuple):
    partition: int
    error: Exception


Outcome = Published | Refused


class Place(NamedTuple):
    """The records of one partition: where they go, and which they are of those that were given."""

    topic: Topic
    partition: int
    records: list[Record]
    indexes: list[int]


def publish(
    resources: Resources,
    topic_name: str,
    records: Sequence[NewRecord],
    *,
    now_ms: int,
    acks: int = ACKS_ALL,
    codec: int = NONE,
    expected_offset: int | None = None,
    origin: Producer = NO_PRODUCER,
) -> Steps[list[Outcome]]:
    """What became of each record, in their order. ApiError: nothing was published."""
    check_acks(acks)
    topic = yield from topic_to_publish_to(resources, topic_name)
    alone = expected_offset is not None or origin is not NO_PRODUCER
    if alone and topic.partitions > 1 and any(_is_anywheres(each) for each in records):
        raise ApiError(
            ErrorCode.INVALID_REQUEST,
            "An expected offset, and an origin's sequence, are about one partition: name it, or give a key.",
        )
    places = yield from placed(resources, topic, records, now_ms)
    if alone and len(places) > 1:
        raise ApiError(
            ErrorCode.INVALID_REQUEST,
            "An expected offset, and an origin's sequence, are about one partition: name it in every record.",
        )
    broker = resources.broker
    outcomes: list[Outcome] = [None] * len(records)  # type: ignore[list-item]
    waiting: list[tuple[Place, int, Batch, Appended]] = []
    for place in places:
        done = 0
        try:
            log = resources.log_of(place.topic, place.partition)
            made = yield from batches(
                broker.worker, place.records, log.config.max_message_bytes, codec, origin, split=not alone
            )
            held = sum([len(batch.data) for batch in made])
            if held > _HELD_UNCOUNTED:
                broker.budget.set_aside(held)
            try:
                for batch in made:
                    appended = yield from append(broker, log, batch.data, now_ms, expected_offset)
                    if appended.durable is None or acks == 0:
                        yield from _tell(outcomes, place, done, batch, appended)
                    else:
                        waiting.append((place, done, batch, appended))
                    done += len(batch.records)
            finally:
                if held > _HELD_UNCOUNTED:
                    broker.budget.take_up(held)
        except Exception as error:
            _refuse(outcomes, place, done, len(place.records), error)
    for place, done, batch, appended in waiting:
        try:
            appended = yield from durable(appended)
        except Exception as error:
            _refuse(outcomes, place, done, done + len(batch.records), error)
        else:
            yield from _tell(outcomes, place, done, batch, appended)
    return outcomes


def _is_anywheres(new: NewRecord) -> bool:
    """Whether neither its partition nor its key says where it goes."""
    return new.partition is None and new.record.key is None


def check_acks(acks: int) -> None:
    if acks not in (-1, 0, 1):
        raise ApiError(ErrorCode.INVALID_REQUIRED_ACKS)


def topic_to_publish_to(resources: Resources, name: str) -> Steps[Topic]:
    topic = topic_to_write(resources, name)
    return (yield from wait(topic)) if isinstance(topic, Pending) else topic


def placed(
    resources: Resources, topic: Topic, records: Sequence[NewRecord], now_ms: int
) -> Steps[list[Place]]:
    """The records by partition, with their timestamps."""
    by_partition: dict[int, Place] = {}
    partitions, keyless = topic.partitions, None
    for index, (record, partition) in enumerate(records):
        if partition is None:
            key = record[1]
            if partitions == 1:
                partition = 0
            elif key is not None:
                partition = partition_of_key(key, partitions)
            else:
                if keyless is None:
                    keyless = resources.broker.publishing.round_robin.next_partition(topic)
                partition = keyless
        if record[0] == NO_TIMESTAMP:
            record = Record(now_ms, *record[1:])
        place = by_partition.get(partition)
        if place is None:
            by_partition[partition] = Place(topic, partition, [record], [index])
        else:
            place[2].append(record)
            place[3].append(index)
        if index % _TURN == _TURN - 1:
            yield None
    return list(by_partition.values())


def placed_in_topics(
    resources: Resources, records: Sequence[tuple[str, NewRecord]], now_ms: int
) -> Steps[list[Place]]:
    """The same for records of several topics. Raises where one cannot be written to."""
    by_topic: dict[str, list[int]] = {}
    for index, (name, _) in enumerate(records):
        by_topic.setdefault(name, []).append(index)
    places: list[Place] = []
    for name, indexes in by_topic.items():
        topic = yield from topic_to_publish_to(resources, name)
        of_topic = yield from placed(resources, topic, [records[index][1] for index in indexes], now_ms)
        for place in of_topic:
            resources.log_of(place.topic, place.partition)  # raises where there is none
            places.append(place._replace(indexes=[indexes[index] for index in place.indexes]))
    return places


def durable(appended: Appended) -> Steps[Appended]:
    """The same, once it may be acknowledged, with the offsets that were given meanwhile."""
    if appended.durable is None:
        return appended
    assigned = yield from wait(appended.durable)
    return appended if assigned is None else appended._replace(**assigned._asdict())


def _tell(outcomes: list[Outcome], place: Place, first: int, batch: Batch, appended: Appended) -> Steps[None]:
    """The records of a batch are published; the first of them is ``first`` of those of its place."""
    partition, offset, append_time = place.partition, appended.base_offset, appended.log_append_time_ms
    for begin in range(0, len(batch.records), _TURN):
        if begin:
            yield None
        some = batch.records[begin : begin + _TURN]
        indexes = place.indexes[first + begin : first + begin + len(some)]
        for index, record in zip(indexes, some, strict=True):
            outcomes[index] = Published(partition, offset, record[0] if append_time < 0 else append_time)
            if offset >= 0:
                offset += 1


def _refuse(outcomes: list[Outcome], place: Place, first: int, end: int, error: Exception) -> None:
    refused = Refused(place.partition, error)
    for index in place.indexes[first:end]:
        outcomes[index] = refused
