"""A transaction of code in the process: records of several topics and offsets of groups, all or nothing.

    async with broker.subscribe("orders", group="billing", auto_commit=False) as records:
        while True:
            orders = await records.poll()
            async with broker.transaction() as transaction:
                await transaction.commit_offsets(records)
                for order in orders:
                    await transaction.publish("invoices", …)

The end of the block commits; an exception in it aborts, and what its subscriptions have handed out and not
committed comes again. So each order is in the invoices once, for who reads committed records.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Self

from kbroker.coordinators.groups.store import TopicPartition
from kbroker.local.calls import Access, Calls
from kbroker.local.errors import ClosedError, InvalidRequest, KafkaError
from kbroker.local.records import (
    Compression,
    Headers,
    Key,
    NewRecord,
    ReceivedRecord,
    RecordMetadata,
    Time,
    Value,
    codec_of,
    new_record,
    new_records,
    size_bytes,
)
from kbroker.local.sources import Source
from kbroker.local.subscription import Subscription, source_of
from kbroker.operations.group_offsets import NewOffset

if TYPE_CHECKING:
    from kbroker.operations import publishing
    from kbroker.operations.transactions.open_transaction import OpenTransaction
    from kbroker.pending import Pending
    from kbroker.requests.resources import Resources
    from kbroker.security.authorizer import Caller


class Transaction(Access):
    """Made by `transaction`, for one `async with`. Its calls are done one at a time."""

    def __init__(
        self, calls: Calls, caller: Caller | None, transactional_id: str | None, timeout_ms: int | None
    ) -> None:
        super().__init__(calls, caller)
        self._transactional_id = transactional_id
        self._timeout_ms = timeout_ms
        self._begun: OpenTransaction | None = None
        self._consumed: dict[Source, dict[TopicPartition, int]] = {}
        self._aborted = False

    @property
    def id(self) -> str:
        """By which it is listed and can be aborted."""
        return str(self._open.id)

    async def __aenter__(self) -> Self:
        if self._begun is not None:
            raise RuntimeError("a transaction is for one 'async with': begin another one")

        def begin(resources: Resources) -> OpenTransaction | Pending[OpenTransaction]:
            return resources.broker.publishing.transactions.begin(
                resources, self._transactional_id, timeout_ms=self._timeout_ms
            )

        begun = await self._ask(begin)
        self._begun = begun
        return self

    async def __aexit__(self, kind: object, error: object, traceback: object) -> None:
        if kind is not None:
            with contextlib.suppress(KafkaError, ClosedError):  # its timeout aborts it, then
                await self.abort()
        elif not self._aborted:
            await self._commit()

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
    ) -> RecordMetadata:
        """Where the record is. Who reads committed records sees it with the commit."""
        record = new_record(value, key, headers, timestamp, partition)
        (told,) = await self._publish([topic], [record], compression)
        return told

    async def publish_many(
        self, records: Sequence[NewRecord], *, compression: Compression = "none"
    ) -> list[RecordMetadata]:
        made = await self._ask(new_records, records)
        return await self._publish([each.topic for each in records], made, compression) if made else []

    async def commit_offsets(self, read: Subscription | ReceivedRecord) -> None:
        """With the transaction: all that a subscription has handed out, or one record and what is before it.

        The subscription must be without auto commit. If the transaction is aborted, what it has handed out
        and not committed comes again.
        """
        source, offsets = _consumed(read)
        if source is None and isinstance(read, Subscription):
            return  # it has handed out nothing
        if source is None or not source.consumer.group_id or not source.belongs_to(self._calls):
            raise InvalidRequest("What was read without a group, or of another broker, has no offsets here.")
        if not offsets:
            return
        new = [NewOffset(*at, offset) for at, offset in offsets.items()]
        self._consumed.setdefault(source, {})

        def add(resources: Resources) -> Pending[Sequence[NewOffset]]:
            return self._open.add_consumed(resources, source.consumer, new)

        await self._ask(add)
        self._consumed[source] |= offsets

    async def commit_offsets_of(self, group: str, offsets: Mapping[TopicPartition, int]) -> None:
        """With the transaction, of a group without members."""
        new = [NewOffset(*at, offset) for at, offset in offsets.items()]

        def add(resources: Resources) -> Pending[None]:
            return self._open.add_offsets(resources, group, new)

        await self._ask(add)

    async def abort(self) -> None:
        """Nothing of it counts. The end of its block does nothing more."""
        self._aborted = True
        for source in self._consumed:
            source.rewind()
        self._consumed = {}
        await self._ask(self._open.abort)

    @property
    def _open(self) -> OpenTransaction:
        if self._begun is None:
            raise RuntimeError("the transaction is not begun: use it as 'async with broker.transaction()'")
        return self._begun

    async def _publish(
        self, topics: Sequence[str], records: Sequence[publishing.NewRecord], compression: Compression
    ) -> list[RecordMetadata]:
        codec = codec_of(compression)
        addressed = list(zip(topics, records, strict=True))

        def publish(resources: Resources) -> Pending[list[publishing.Published]]:
            return self._open.publish(resources, addressed, codec=codec)

        published = await self._when_there_is_room(sum(map(size_bytes, records)), lambda: self._ask(publish))
        return [RecordMetadata(topic, *each) for topic, each in zip(topics, published, strict=True)]

    async def _commit(self) -> None:
        try:
            await self._ask(self._open.commit)
        except KafkaError:
            with contextlib.suppress(KafkaError, ClosedError):
                await self.abort()
            raise
        for source, offsets in self._consumed.items():
            source.committed(offsets)


def _consumed(read: Subscription | ReceivedRecord) -> tuple[Source | None, dict[TopicPartition, int]]:
    """What it was read from, and where its group goes on."""
    if isinstance(read, ReceivedRecord):
        source = read.commits if isinstance(read.commits, Source) else None
        return source, {TopicPartition(read.topic, read.partition): read.offset + 1}
    source = source_of(read)
    return source, {} if source is None else source.offsets_handed_out()
