"""The Kafka connections in captured packets, explained.

Who is the client is told by the ports, or by who sends something that looks like a request. A connection
whose beginning was not captured, or that lost bytes between frames, is followed again from the next frame
that is plausible: a request by its header, a response by the correlation id of a request.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from kbroker.wire.connection import Connection, Event
from kbroker.wire.conversation import HEAD_OF_RESPONSE
from kbroker.wire.frames import REQUEST, RESPONSE, explain_request, is_plausible_request
from kbroker.wire.framing import LARGEST_FRAME, LENGTH_BYTES, Framer
from kbroker.wire.packets import ACK, LINK_TYPES, RST, SYN, Address, Segment, segment_of
from kbroker.wire.pcap import Packet
from kbroker.wire.tcp_streams import Piece, Stream

_KAFKA_PORT: Final = 9092
_MOST_UNDECIDED: Final = 64 << 10  # bytes of a connection in which nothing of Kafka was seen
_MOST_UNDECIDED_SEGMENTS: Final = 200
_MOST_GUESSES: Final = 5  # of a connection, where a frame begins: then it is not Kafka's


class _Side:
    """One direction of a connection."""

    def __init__(self, framer: Framer, head: int) -> None:
        self.stream = Stream()
        self.framer = framer
        self.least = LENGTH_BYTES + head
        self.searching = False  # for where the next frame begins
        self.searched = bytearray()  # the last bytes, in which it may begin
        self.skipped = 0


class _Captured:
    """A connection: the sides are of `client` and of `broker`."""

    def __init__(self, number: int, client: Address, broker: Address) -> None:
        self.client = client
        self.broker = broker
        self.connection = Connection(number, is_complete=False)
        self._has_gaps = False  # so that where a frame begins was guessed
        self._wrong_guesses = 0
        self.requests = _Side(self.connection.requests, 10)
        self.responses = _Side(self.connection.responses, HEAD_OF_RESPONSE)

    @property
    def has_data(self) -> bool:
        return bool(self.connection.requests.position or self.connection.responses.position)

    def take(self, segment: Segment, now: float) -> Iterator[Event]:
        of_client = segment.source == self.client
        side, other = (self.requests, self.responses) if of_client else (self.responses, self.requests)
        if not side.stream.has_begun and not segment.flags & SYN and (segment.data or segment.missing):
            side.searching = self._has_gaps = True  # perhaps within a frame
        for piece in side.stream.take(segment):
            self._piece(side, piece, now)
        if segment.flags & ACK:
            for piece in other.stream.acknowledged(segment.acknowledged):
                self._piece(other, piece, now)
        yield from self.connection.events()

    def end(self, now: float) -> Iterator[Event]:
        for side in (self.requests, self.responses):
            for piece in side.stream.end():
                self._piece(side, piece, now)
        yield from self.connection.events()

    def _piece(self, side: _Side, piece: Piece, now: float) -> None:
        whose = "requests" if side is self.requests else "responses"
        if isinstance(piece, int):
            if side.searching:
                side.skipped += len(side.searched) + piece
                side.searched.clear()
            elif not self.connection.lost(REQUEST if side is self.requests else RESPONSE, piece, now):
                side.searching = self._has_gaps = True
                self.connection.remark(now, f"{piece} bytes of {whose} were not captured")
            return
        if side.searching:
            side.searched += piece
            found = self._search(side)
            if found is None:
                excess = max(len(side.searched) - side.least + 1, 0)
                side.skipped += excess
                del side.searched[:excess]
                return
            side.skipped += found
            piece = bytes(side.searched[found:])
            if side.skipped:
                text = f"{side.skipped} bytes of {whose} are skipped: the next frame begins behind them"
                self.connection.remark(now, text)
            side.searching, side.skipped = False, 0
            side.searched.clear()
        if side is self.requests:
            self.connection.from_client(piece, now)
        else:
            self.connection.from_broker(piece, now)
        if side.framer.opaque and self._has_gaps and self._wrong_guesses < _MOST_GUESSES:
            self._wrong_guesses += 1
            for each in (self.requests, self.responses):
                each.framer.begin_anew()
                each.searching = True

    def _search(self, side: _Side) -> int | None:
        """Where a frame begins in the bytes that are looked through."""
        view = memoryview(bytes(side.searched))
        for position in range(len(view) - side.least + 1):
            size = int.from_bytes(view[position : position + LENGTH_BYTES], "big", signed=True)
            if not 0 < size <= LARGEST_FRAME:
                continue
            if self._begins(side, view[position + LENGTH_BYTES :], size, within=position > 0):
                return position
        return None

    def _begins(self, side: _Side, frame: memoryview, size: int, *, within: bool) -> bool:
        if side is self.responses:
            return self.connection.conversation.is_plausible_response(bytes(frame[:size]), size)
        if frame[0] or (within and not _has_client_id(frame)):
            return False
        return (
            is_plausible_request(frame, size) and explain_request(bytes(frame[:size]), size).problem is None
        )


def _has_client_id(frame: memoryview) -> bool:
    """Within other bytes, a request is one that says whose it is: else numbers are easily taken for one."""
    return frame[8] == 0 and frame[9] > 0


class Capture:
    def __init__(self, ports: frozenset[int] = frozenset()) -> None:
        """`ports`: of brokers; if there are none, every connection that looks like Kafka is explained."""
        self._ports = ports
        self._connections: dict[frozenset[Address], _Captured | None] = {}  # None: not Kafka's
        self._undecided: dict[frozenset[Address], list[tuple[Segment, float]]] = {}
        self._count = 0
        self._packets = 0
        self._unread: dict[int, int] = {}  # link type → packets

    def events(self, packets: Iterable[Packet]) -> Iterator[Event]:
        now = 0.0
        for packet in packets:
            self._packets += 1
            now = packet.time
            if packet.link_type not in LINK_TYPES:
                self._unread[packet.link_type] = self._unread.get(packet.link_type, 0) + 1
                continue
            segment = segment_of(packet.link_type, packet.data)
            if segment is not None:
                yield from self._take(segment, now)
        for captured in self._connections.values():
            if captured is not None:
                yield from captured.end(now)

    def summary(self) -> str:
        text = f"{self._packets} packets, {self._count} Kafka connections"
        if self._unread:
            kinds = ", ".join(map(str, sorted(self._unread)))
            text += f"; {sum(self._unread.values())} packets of link type {kinds} cannot be read"
        return text

    def _take(self, segment: Segment, now: float) -> Iterator[Event]:
        key = frozenset((segment.source, segment.target))
        if segment.flags & SYN and not segment.flags & ACK:
            yield from self._opened(key, now)
        if key in self._connections:
            captured = self._connections[key]
            if captured is not None:
                yield from captured.take(segment, now)
                if segment.flags & RST:
                    yield from captured.end(now)
            return
        waiting = self._undecided.setdefault(key, [])
        waiting.append((segment, now))
        client = self._client(waiting)
        if client is None:
            seen = sum(len(each.data) for each, _ in waiting)
            if self._ports or seen > _MOST_UNDECIDED or len(waiting) > _MOST_UNDECIDED_SEGMENTS:
                self._connections[key] = None
                del self._undecided[key]
            return
        del self._undecided[key]
        broker = segment.target if segment.source == client else segment.source
        self._count += 1
        captured = self._connections[key] = _Captured(self._count, client, broker)
        yield Event(
            self._count, waiting[0][1], None, remark=f"{_text(client)} to {_text(broker)}", routine=True
        )
        for each, at in waiting:
            yield from captured.take(each, at)

    def _opened(self, key: frozenset[Address], now: float) -> Iterator[Event]:
        """A SYN: of a new connection, if there was one with these ports before; or sent again."""
        captured = self._connections.get(key)
        if captured is None:
            self._connections.pop(key, None)
        elif captured.has_data:
            del self._connections[key]
            yield from captured.end(now)

    def _client(self, waiting: list[tuple[Segment, float]]) -> Address | None:
        """Who asks, in a connection that is Kafka's as far as can be seen."""
        segment = waiting[-1][0]
        ports = self._ports or {_KAFKA_PORT}
        for client, broker in ((segment.source, segment.target), (segment.target, segment.source)):
            if broker[1] in ports and client[1] not in ports:
                return client
        if self._ports:
            return None
        size = int.from_bytes(segment.data[:LENGTH_BYTES], "big", signed=True)
        if 0 < size <= LARGEST_FRAME and is_plausible_request(segment.data[LENGTH_BYTES:], size):
            return segment.source
        return None


def _text(address: Address) -> str:
    return f"[{address[0]}]:{address[1]}" if ":" in address[0] else f"{address[0]}:{address[1]}"
