"""A stream under way: what its source reads goes through the filters to the client, piece by piece.

Invariants:
- One batch of records is under way at a time. It is read when the client has taken the one before, and counts
  in the budget until the client has taken it.
- What a client is told to be its position lies behind what it was sent, and before what it was not.
- Streams with much to send take turns with each other and with all else, also in what each could do at once.
- A stream without anything to send waits for its source, and for nothing else but the time to say that it is
  still there.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol

from kbroker.http.answers import encoded
from kbroker.http.exchange import ClientGone
from kbroker.http.problems import Problem
from kbroker.http.shown_records import shown
from kbroker.network.awaiting import settled

if TYPE_CHECKING:
    from kbroker.http.json_records import Encoding
    from kbroker.http.request import HttpRequest
    from kbroker.http.streams.outlet import Outlet, Validity
    from kbroker.http.streams.positions import Positions
    from kbroker.operations.topic_reader import Gap, TopicRead
    from kbroker.pending import Pending
    from kbroker.protocol.records import Record
    from kbroker.requests.long_requests import Steps

_BATCH_RECORDS = 500
_BATCH_BYTES = 128 * 1024
_PIECE_BYTES = 64 * 1024
_TURN_BYTES = 16 * 1024  # looked at, from one pause to the next
_RECORD_BYTES = 512  # as much to look at as so many bytes of its value


class Source(Protocol):
    """What a stream reads."""

    def read(self, max_records: int, max_bytes: int) -> Pending[TopicRead]: ...
    def put_back(self, read: TopicRead) -> None: ...
    def handed_out(self) -> None:
        """The client has taken all that was read."""

    def seek(self, partition: int, offset: int) -> None: ...
    async def close(self) -> None: ...


class Message(NamedTuple):
    """A record as JSON, and the client's position behind it."""

    record: bytes
    position: str


class Form(Protocol):
    """How a stream is written. What is empty is not sent."""

    def begin(self, position: str) -> bytes: ...
    def records(self, messages: Sequence[Message]) -> bytes: ...
    def gap(self, gap: bytes, position: str) -> bytes: ...
    def position(self, position: str) -> bytes: ...
    def still_there(self) -> bytes: ...


class Shape(NamedTuple):
    """What the records of a stream are to be."""

    topic: str
    encodings: tuple[Encoding, Encoding]
    matches: Callable[[Record], bool] | None
    """Which are wanted; None: all."""
    max_records: int | None


class _Placed(NamedTuple):
    """A record, and what stands around its offset in the client's position."""

    partition: int
    record: Record
    before: str
    after: str


class ServerStops(Problem):
    def __init__(self) -> None:
        super().__init__(503, "The broker stops: connect again, and go on where this stream has ended.")


class Feed:
    def __init__(
        self,
        request: HttpRequest,
        source: Source,
        positions: Positions | None,
        shape: Shape,
        form: Form,
        outlet: Outlet,
        validity: Validity,
    ) -> None:
        """``positions``: those of the client; None: its group has them."""
        self._paused = False
        self._halted = False
        self._over = False
        self._request = request
        self._source = source
        self._positions = positions
        self._shape = shape
        self._form = form
        self._outlet = outlet
        self._validity = validity
        self._left = shape.max_records
        self._reading: Pending[TopicRead] | None = None
        self._told = ""  # the last position that the client was told
        self._sent_at = 0.0
        self._wishes: list[tuple[Callable[[], None], asyncio.Future[None]]] = []

    async def run(self) -> None:
        """To its end: all the records that were wanted, or what is raised."""
        try:
            await self._send(self._form.begin(self._position()), self._position())
            while self._left is None or self._left > 0:
                await self._hand_out(await self._next())
        finally:
            self._put_back()
            await self._source.close()
            self._over = True
            for _, done in self._wishes:
                if not done.done():
                    done.set_exception(ClientGone())

    def _position(self) -> str:
        return "" if self._positions is None else str(self._positions)

    # what its user wants meanwhile

    def pause(self) -> None:
        self._paused = True
        self._put_back()

    def resume(self) -> None:
        self._paused = False
        self._outlet.change()

    async def seek(self, partition: int, offset: int) -> None:
        """Once the client has taken what is under way. What it gets after `go_on` comes from here."""

        def move() -> None:
            self._source.seek(partition, offset)
            self._halted = True
            if self._positions is not None:
                self._positions.move(partition, offset)

        await self._between_batches(move)

    def go_on(self) -> None:
        """The client knows that the stream has moved."""
        if self._halted:
            self._halted = False
            self._outlet.change()

    async def _between_batches(self, do: Callable[[], None]) -> None:
        if self._over:
            raise ClientGone
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._wishes.append((do, done))
        self._outlet.change()
        await done

    def _fulfil_wishes(self) -> None:
        while self._wishes:
            self._put_back()
            do, done = self._wishes.pop(0)
            try:
                do()
            except Exception as error:
                outcome: Exception | None = error
            else:
                outcome = None
            if done.cancelled():
                continue
            if outcome is None:
                done.set_result(None)
            else:
                done.set_exception(outcome)

    # in

    async def _next(self) -> TopicRead:
        while True:
            self._outlet.check()
            if self._outlet.stopping:
                raise ServerStops
            self._validity.check()
            self._fulfil_wishes()
            if self._reading is None and not self._paused and not self._halted:
                most = _BATCH_RECORDS if self._left is None else min(_BATCH_RECORDS, self._left)
                self._reading = self._source.read(most, _BATCH_BYTES)
                self._reading.then(lambda _: self._outlet.change())
            reading = self._reading
            if reading is not None and reading.done:
                self._reading = None
                return reading.result()
            await self._wait()

    async def _wait(self) -> None:
        silence_ms: int = self._request.broker.settings["kbroker.http.stream.keep.alive.ms"]
        left = self._sent_at + silence_ms / 1000 - asyncio.get_running_loop().time()
        if left <= 0 or not await self._outlet.until_changed(left):
            await self._say_something()

    async def _say_something(self) -> None:
        position = self._position()
        if position != self._told:
            await self._send(self._form.position(position), position)
        else:
            await self._send(self._form.still_there(), position)

    def _put_back(self) -> None:
        """What is being read, or was, and is not handed out."""
        reading, self._reading = self._reading, None
        if reading is None:
            return
        if reading.succeeded:
            self._source.put_back(reading.result())
        else:
            reading.abandon()

    # out

    async def _hand_out(self, read: TopicRead) -> None:
        request, outlet = self._request, self._outlet
        held = request.held_bytes
        request.hold(read.size_bytes)
        if self._positions is not None:
            for number, offset in read.new.items():
                self._positions.move(number, offset)
        try:
            for gap in read.gaps:
                await self._tell_gap(gap)
            records = self._records(read)
            turns = request.broker.long_requests
            while piece := await settled(turns.run_in_turn(self._piece(records))):
                if outlet.stopping:
                    raise ServerStops
                request.hold(len(piece))
                await self._send(piece, self._told)
                await outlet.drained()
        finally:
            request.hold(held - request.held_bytes)
        self._source.handed_out()

    def _piece(self, records: Iterator[_Placed]) -> Steps[bytes]:
        """Some of the records, as they are sent; empty: none are left."""
        topic, encodings, matches, _ = self._shape
        messages: list[Message] = []
        size = looked_at = 0
        while size < _PIECE_BYTES and self._left != 0:
            placed = next(records, None)
            if placed is None:
                break
            partition, record, before, after = placed
            looked_at += _RECORD_BYTES + len(record.value or b"")
            if matches is None or matches(record):
                text = shown(record, encodings, {"topic": topic, "partition": partition})
                if not isinstance(text, bytes):
                    text = yield from text
                self._told = "" if self._positions is None else f"{before}{record.offset + 1}{after}"
                messages.append(Message(text, self._told))
                size += len(text)
                if self._left is not None:
                    self._left -= 1
            if looked_at >= _TURN_BYTES:
                looked_at = 0
                yield None
        return self._form.records(messages) if messages else b""

    def _records(self, read: TopicRead) -> Iterator[_Placed]:
        positions = self._positions
        before = after = ""
        for part in read.parts:
            if positions is not None:
                before, after = positions.around(part.partition)
            for record in part.records:
                yield _Placed(part.partition, record, before, after)
            if positions is not None:
                positions.move(part.partition, part.next_offset)

    async def _tell_gap(self, gap: Gap) -> None:
        if self._positions is not None:
            self._positions.move(gap.partition, gap.next_offset)
        document = {
            "topic": self._shape.topic,
            "partition": gap.partition,
            "offset": gap.offset,
            "nextOffset": gap.next_offset,
        }
        position = self._position()
        await self._send(self._form.gap(encoded(document), position), position)

    async def _send(self, data: bytes, position: str) -> None:
        if data:
            await self._outlet.send(data)
        self._told = position
        self._sent_at = asyncio.get_running_loop().time()
