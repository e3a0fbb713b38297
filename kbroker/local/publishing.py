"""Publishing from code in the process: one record, several each for itself, or several all or nothing.

What is large waits until the process has room for it, and counts in its budget until it is published.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from kbroker.local.calls import Access
from kbroker.local.errors import KafkaError, kafka_error
from kbroker.local.records import (
    Compression,
    Headers,
    Key,
    NewRecord,
    RecordMetadata,
    Time,
    Value,
    codec_of,
    new_record,
    new_records,
    size_bytes,
)
from kbroker.operations import publishing
from kbroker.operations.batching import NO_PRODUCER, Producer
from kbroker.pending import Pending
from kbroker.security.acls import AclOperation

if TYPE_CHECKING:
    from kbroker.operations.publishing import Outcome
    from kbroker.requests.resources import Resources

_MOST_SEQUENCE: Final = (1 << 31) - 1


class Origin(NamedTuple):
    """Who writes, by its own name, and the number of what it writes: for each partition without a gap.

    What comes again is told again and not written again, even if the process was killed in between. The
    broker knows the last five of an origin in each partition, over a restart the last one, for
    producer.id.expiration.ms.
    """

    name: str
    sequence: int


class Publishing(Access):
    async def publish(
        self,
        topic: str,
        value: Value,
        *,
        key: Key = None,
        headers: Headers = (),
        timestamp: Time | None = None,
        partition: int | None = None,
        compression: Compression = "none",
        expected_offset: int | None = None,
        origin: Origin | None = None,
    ) -> RecordMetadata:
        """Where the record is, once it is durable as the broker's settings ask for.

        ``expected_offset``: that the record must get, or nothing is written (UnexpectedOffset).
        """
        record = new_record(value, key, headers, timestamp, partition)
        codec = codec_of(compression)
        producer = NO_PRODUCER if origin is None else await self._producer(topic, origin)
        (outcome,) = await self._when_there_is_room(
            size_bytes(record),
            lambda: self._ask(
                publishing.publish,
                topic,
                [record],
                now_ms=self._now_ms(),
                codec=codec,
                expected_offset=expected_offset,
                origin=producer,
            ),
        )
        told = _told(topic, outcome)
        if isinstance(told, KafkaError):
            raise told
        return told

    async def publish_each(
        self, records: Sequence[NewRecord], *, compression: Compression = "none"
    ) -> list[RecordMetadata | KafkaError]:
        """What became of each record: where it is, or why it was refused.

        A batch for each partition that they go to: cheaper than one after the other, and than all or nothing.
        """
        codec = codec_of(compression)
        made = await self._ask(new_records, records)
        by_topic: dict[str, list[int]] = {}
        for index, record in enumerate(records):
            by_topic.setdefault(record.topic, []).append(index)
        told: list[RecordMetadata | KafkaError] = [None] * len(records)  # type: ignore[list-item]

        async def publish_all() -> None:
            for topic, indexes in by_topic.items():
                outcomes = await self._published(topic, [made[index] for index in indexes], codec)
                for index, outcome in zip(indexes, outcomes, strict=True):
                    told[index] = outcome

        await self._when_there_is_room(sum(map(size_bytes, made)), publish_all)
        return told

    async def publish_many(
        self,
        records: Sequence[NewRecord],
        *,
        compression: Compression = "none",
        expected_offset: int | None = None,
    ) -> list[RecordMetadata]:
        """Publish all of them, to whatever topics and partitions, or none. Where they are, in their order.

        What goes into one partition is one batch; the rest is a transaction: who reads committed records sees
        all of it or nothing. ``expected_offset``: of the first one, where all go into one partition.
        """
        from kbroker.operations.atomic_publishing import publish_atomically

        codec = codec_of(compression)
        made = await self._ask(new_records, records)
        if not made:
            return []
        addressed = [(record.topic, each) for record, each in zip(records, made, strict=True)]
        published = await self._when_there_is_room(
            sum(map(size_bytes, made)),
            lambda: self._ask(
                publish_atomically,
                addressed,
                now_ms=self._now_ms(),
                codec=codec,
                expected_offset=expected_offset,
            ),
        )
        return [RecordMetadata(record.topic, *each) for record, each in zip(records, published, strict=True)]

    async def _published(
        self, topic: str, records: list[publishing.NewRecord], codec: int
    ) -> Sequence[RecordMetadata | KafkaError]:
        try:
            outcomes = await self._ask(publishing.publish, topic, records, now_ms=self._now_ms(), codec=codec)
        except KafkaError as error:
            return [error] * len(records)
        return [_told(topic, outcome) for outcome in outcomes]

    async def _producer(self, topic: str, origin: Origin) -> Producer:
        if not origin.name or not 0 <= origin.sequence <= _MOST_SEQUENCE:
            raise ValueError(f"an origin has a name, and a sequence from 0 to {_MOST_SEQUENCE}: {origin}")

        def find(resources: Resources) -> int | Pending[int]:
            resources.check_topic(AclOperation.WRITE, topic)  # who may not write makes no origins
            owner = "" if resources.principal is None else str(resources.principal)
            return resources.broker.publishing.origins.producer_id(owner, origin.name)

        return Producer(await self._ask(find), 0, origin.sequence)


def _told(topic: str, outcome: Outcome) -> RecordMetadata | KafkaError:
    if isinstance(outcome, publishing.Published):
        return RecordMetadata(topic, *outcome)
    error = kafka_error(outcome.error)
    if error is None:
        raise outcome.error
    return error
