"""Records as they come, of a topic or of what a group gives its member, with commits the other way.

Invariants:
- One batch is under way at a time. It is read when the client's window has taken the one before, and counts
  in the budget until then.
- A member commits what its client says, and nothing else. It leaves its group with the call.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

from kbroker.grpc.call import stopped
from kbroker.grpc.groups import given_offsets, shown_refusals
from kbroker.grpc.messages import ours
from kbroker.grpc.records import add_records, limit, start_of
from kbroker.grpc.statuses import GrpcError, Status, grpc_error
from kbroker.network.awaiting import settled
from kbroker.operations.consumers.settings import ConsumerSettings, OffsetReset
from kbroker.operations.group_offsets import NewOffset, Refusals, TopicPartition
from kbroker.operations.offsets import EARLIEST, LATEST, visible_end
from kbroker.operations.partitions import topic_with_partition
from kbroker.operations.records import record_bytes
from kbroker.operations.topic_reader import Gap, gap_at, open_reader, positions_at
from kbroker.security.acls import AclOperation

if TYPE_CHECKING:
    from kbroker.grpc.call import Call
    from kbroker.operations.consumers.consumer import Consumer
    from kbroker.operations.topic_reader import TopicReader
    from kbroker.protocol.records import Record

_USUAL_RECORDS: Final = 500
_MOST_RECORDS: Final = 10_000
_USUAL_BYTES: Final = 128 * 1024
_MOST_BYTES: Final = 16 * 1024 * 1024
_POLL_MS: Final = 1000  # then the assignment is looked at
_ASSIGNED_MS: Final = 3_600_000  # a member may have to wait until another one leaves
_RESPONSE, _BATCH = ours("ConsumeResponse"), ours("Batch")


class _Part(NamedTuple):
    """Records of one partition, that follow each other."""

    topic: str
    partition: int
    records: Sequence[Record]
    next_offset: int


class _Told(NamedTuple):
    """What there is for the client."""

    assigned: Sequence[Any] | None
    gaps: Sequence[tuple[str, Gap]]
    parts: Sequence[_Part]
    size_bytes: int


class _Source(Protocol):
    def told(self) -> AsyncIterator[_Told]: ...
    async def commit(self, offsets: Sequence[NewOffset]) -> Refusals: ...
    def close(self) -> None: ...


async def consume(call: Call) -> None:
    first = await call.receive()
    if first is None or not first.HasField("subscribe"):
        raise GrpcError(Status.INVALID_ARGUMENT, "The first message subscribes.")
    source = await _opened(call, first.subscribe)
    feed = _Feed(call, source)
    commits = asyncio.get_running_loop().create_task(feed.take_commits())
    try:
        await feed.run()
    finally:
        commits.cancel()
        source.close()


class _Feed:
    def __init__(self, call: Call, source: _Source) -> None:
        self._call = call
        self._source = source
        self._turn = asyncio.Lock()

    async def run(self) -> None:
        """Until the client, or something else, ends it."""
        call = self._call
        told = self._source.told()
        try:
            while True:
                if call.stopping:
                    raise stopped()
                call.resting = True
                try:
                    found = await anext(told)
                finally:
                    call.resting = False
                await self._hand_out(found)
        finally:
            await told.aclose()  # type: ignore[attr-defined]  # it is a generator

    async def take_commits(self) -> None:
        call = self._call
        try:
            while (request := await call.receive(rests=False)) is not None:
                if not request.HasField("commit"):
                    raise GrpcError(Status.INVALID_ARGUMENT, "Messages behind the first one commit.")
                offsets = given_offsets(request.commit.offsets)
                refusals = await self._source.commit(offsets)
                response = _RESPONSE()
                response.committed.id = request.commit.id
                response.committed.refused.extend(shown_refusals(refusals))
                await self._send(response)
        except Exception as error:
            call.fail(grpc_error(error))

    async def _hand_out(self, told: _Told) -> None:
        call = self._call
        call.hold(told.size_bytes)
        try:
            if told.assigned is not None:
                response = _RESPONSE()
                response.assigned.partitions.extend(told.assigned)
                await self._send(response)
            for topic, gap in told.gaps:
                response = _RESPONSE()
                response.gap.topic, response.gap.partition = topic, gap.partition
                response.gap.offset, response.gap.next_offset = gap.offset, gap.next_offset
                await self._send(response)
            for part in told.parts:
                response = _RESPONSE()
                batch = response.batch
                batch.topic, batch.partition, batch.next_offset = part.topic, part.partition, part.next_offset
                await call.in_turns(add_records(part.records, batch.records))
                await self._send(response)
        finally:
            call.let_go(told.size_bytes)

    async def _send(self, response: Any) -> None:
        """Whole messages, one after the other."""
        async with self._turn:
            await self._call.send(response)


async def _opened(call: Call, subscribe: Any) -> _Source:
    max_records = limit(subscribe.max_records, "max_records", _USUAL_RECORDS, _MOST_RECORDS)
    max_bytes = limit(subscribe.max_bytes, "max_bytes", _USUAL_BYTES, _MOST_BYTES)
    topics = list(subscribe.topics)
    if not topics or not all(topics):
        raise GrpcError(Status.INVALID_ARGUMENT, "Name the topics.")
    if subscribe.group:
        if subscribe.partitions:
            raise GrpcError(Status.INVALID_ARGUMENT, "The group says which partitions are read.")
        return _Member(call, subscribe, topics, max_records, max_bytes)
    if len(topics) > 1:
        raise GrpcError(Status.INVALID_ARGUMENT, "Without a group one call reads one topic.")
    reader = await _reader(call, subscribe, topics[0])
    return _Reader(call, reader, max_records, max_bytes)


# without a group


async def _reader(call: Call, subscribe: Any, name: str) -> TopicReader:
    resources, committed = call.resources, subscribe.read_committed
    topic = resources.topic(name, AclOperation.READ)
    asked = {each.partition: each.start for each in subscribe.partitions}
    if len(asked) < len(subscribe.partitions):
        raise GrpcError(Status.INVALID_ARGUMENT, "A partition is named twice.")
    for partition in asked:
        topic_with_partition(resources, name, partition, AclOperation.READ)
    by_time: dict[int, list[int]] = {}
    positions: dict[int, int] = {}
    for partition in asked or range(topic.partitions):
        start = asked.get(partition)
        if start is None or start.WhichOneof("at") is None:
            start = subscribe.start
        offset, timestamp = start_of(start, LATEST)
        if offset is not None:
            positions[partition] = offset
        else:
            by_time.setdefault(timestamp, []).append(partition)
    for timestamp, partitions in by_time.items():
        found = positions_at(resources, topic, partitions, timestamp, committed=committed)
        positions |= await call.in_turns(found)
    opening = open_reader(resources, topic, sorted(asked) or None, positions, committed=committed)
    reader: TopicReader = await call.in_turns(opening)
    return reader


class _Reader:
    """The partitions of a topic, also those to come."""

    def __init__(self, call: Call, reader: TopicReader, max_records: int, max_bytes: int) -> None:
        self._reader = reader
        self._topic = reader.topic.name
        self._limits = max_records, max_bytes

    async def told(self) -> AsyncIterator[_Told]:
        reader = self._reader
        yield _Told(self._positions(), (), (), 0)
        while True:
            read = await settled(reader.read(*self._limits))
            parts = [
                _Part(self._topic, part.partition, part.records, part.next_offset)
                for part in read.parts
                if part.records
            ]
            gaps = [(self._topic, gap) for gap in read.gaps]
            yield _Told(self._positions() if read.new else None, gaps, parts, read.size_bytes)

    def _positions(self) -> list[Any]:
        return [
            ours("Offset")(topic=self._topic, partition=partition, offset=offset)
            for partition, offset in sorted(self._reader.positions.items())
        ]

    async def commit(self, offsets: Sequence[NewOffset]) -> Refusals:
        raise GrpcError(Status.INVALID_ARGUMENT, "Without a group there is nothing to commit to.")

    def close(self) -> None:
        self._reader.close()


# with a group


class _Member:
    """What a group gives one of its members."""

    def __init__(
        self, call: Call, subscribe: Any, topics: Sequence[str], max_records: int, max_bytes: int
    ) -> None:
        self._call = call
        self._limits = {"max_records": max_records, "max_bytes": max_bytes}
        self._gaps: list[tuple[str, Gap]] = []
        resources = call.resources
        settings = ConsumerSettings(
            auto_offset_reset=_reset(subscribe.start),
            auto_commit=False,
            read_committed=subscribe.read_committed,
            idle_ms=None,
            client_id=call.caller.client_id or "grpc",
            client_host=f"/{call.caller.peer_host}",
        )
        self._consumer: Consumer = call.broker.consumers.open(resources, subscribe.group, settings)
        self._consumer.on_out_of_range = self._out_of_range
        try:
            self._consumer.subscribe(resources, topics)
        except BaseException:
            self._consumer.close()
            raise

    async def told(self) -> AsyncIterator[_Told]:
        consumer, resources = self._consumer, self._call.resources
        await settled(consumer.assigned(max_wait_ms=_ASSIGNED_MS))
        seen = -1
        while True:
            if consumer.assignment_changes != seen:
                seen = consumer.assignment_changes
                yield _Told(await self._assigned(), (), (), 0)
            polled = await settled(consumer.poll(resources, max_wait_ms=_POLL_MS, **self._limits))
            parts = []
            for (topic, partition), some in groupby(polled, key=lambda each: (each.topic, each.partition)):
                records = [each.record for each in some]
                parts.append(_Part(topic, partition, records, records[-1].offset + 1))
            gaps, self._gaps = self._gaps, []
            if parts or gaps:
                yield _Told(None, gaps, parts, sum(record_bytes(each.record) for each in polled))

    async def _assigned(self) -> list[Any]:
        consumer, found = self._consumer, []
        for at in consumer.assignment:
            offset = await settled(consumer.position(self._call.resources, at))
            found.append(ours("Offset")(topic=at.topic, partition=at.partition, offset=offset))
        return found

    async def commit(self, offsets: Sequence[NewOffset]) -> Refusals:
        refusals: Refusals = await settled(self._consumer.commit(self._call.resources, offsets))
        return refusals

    def _out_of_range(self, at: TopicPartition, offset: int) -> int:
        resources = self._call.resources
        log = resources.log_of(resources.topic(at.topic, AclOperation.READ), at.partition)
        end = visible_end(log, committed=self._consumer.settings.read_committed)
        gap = gap_at(at.partition, offset, log.log_start_offset, end)
        if gap is None:
            return offset
        self._gaps.append((at.topic, gap))
        return gap.next_offset

    def close(self) -> None:
        if not self._consumer.closed:
            self._consumer.expire()


def _reset(start: Any) -> OffsetReset:
    offset, timestamp = start_of(start, LATEST)
    if offset is not None or timestamp not in (EARLIEST, LATEST):
        raise GrpcError(
            Status.INVALID_ARGUMENT, "A group goes on where it has committed; else it begins at a position."
        )
    return OffsetReset.EARLIEST if timestamp == EARLIEST else OffsetReset.LATEST
