"""Records published all or nothing, whatever topics and partitions they go to.

What fits into one batch of one partition is one: a log takes a batch or does not. The rest is a transaction
of one of the broker's own producers. Who reads committed records sees all of it or nothing; who does not may
see records of one that is aborted in the end, as with every transaction.

Once begun, a transaction is ended, whether somebody still waits for it or not.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from kbroker.operations.appending import append
from kbroker.operations.batching import batches
from kbroker.operations.publishing import NewRecord, Place, Published, durable, placed_in_topics
from kbroker.operations.transactions.producer import TransactionalProducer, told
from kbroker.pending import Pending, wait
from kbroker.protocol.errors import ApiError, ErrorCode
from kbroker.protocol.records.compression import NONE
from kbroker.storage.errors import RecordTooLarge

if TYPE_CHECKING:
    from kbroker.operations.own_producers import OwnProducer
    from kbroker.requests.long_requests import Steps
    from kbroker.requests.resources import Resources


def publish_atomically(
    resources: Resources,
    records: Sequence[tuple[str, NewRecord]],
    *,
    now_ms: int,
    codec: int = NONE,
    expected_offset: int | None = None,
) -> Steps[list[Published]]:
    """Where the records of these topics are now, in their order. Whatever is raised: none is published."""
    places = yield from placed_in_topics(resources, records, now_ms)
    if len(places) == 1:
        try:
            return (yield from _in_one_batch(resources, places[0], now_ms, codec, expected_offset))
        except RecordTooLarge:
            if expected_offset is not None or len(records) == 1:
                raise
    elif expected_offset is not None:
        raise ApiError(
            ErrorCode.INVALID_REQUEST, "An expected offset is about one partition: name it in every record."
        )
    steps = _in_transaction(resources, places, len(records), now_ms, codec)
    running = resources.broker.long_requests.run(steps)
    if not isinstance(running, Pending):
        return running
    outcome: Pending[list[Published]] = Pending()
    running.then(outcome.follow)
    return (yield from wait(outcome))


def _in_one_batch(
    resources: Resources, place: Place, now_ms: int, codec: int, expected_offset: int | None
) -> Steps[list[Published]]:
    broker = resources.broker
    log = resources.log_of(place.topic, place.partition)
    (batch,) = yield from batches(
        broker.worker, place.records, log.config.max_message_bytes, codec, split=False
    )
    appended = yield from append(broker, log, batch.data, now_ms, expected_offset)
    appended = yield from durable(appended)
    return (yield from told([(place, 0, batch, appended)], len(place.records)))


def _in_transaction(
    resources: Resources, places: Sequence[Place], count: int, now_ms: int, codec: int
) -> Steps[list[Published]]:
    own = yield from resources.broker.publishing.own_producers.take(resources)
    producer = TransactionalProducer(own.transactional_id, own.producer)
    try:
        published = yield from producer.write(resources, places, count, now_ms=now_ms, codec=codec)
    except BaseException:
        with suppress(Exception):  # who takes its number aborts what there is
            yield from _end(resources, own, producer, commit=False)
        raise
    yield from _end(resources, own, producer, commit=True)
    return published


def _end(
    resources: Resources, own: OwnProducer, producer: TransactionalProducer, *, commit: bool
) -> Steps[None]:
    producers = resources.broker.publishing.own_producers
    try:
        producers.give_back(own, (yield from producer.end(resources, commit=commit)))
    except BaseException:
        producers.give_up(own)
        raise
