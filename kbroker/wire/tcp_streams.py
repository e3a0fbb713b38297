"""One direction of a TCP connection, put in order from its segments as they were captured.

Segments may come twice, overlap, or out of order. A gap is filled by what comes later, until it is certain
that nothing will: the receiver keeps acknowledging bytes behind it (the capture lost them), or much waits.
Sequence numbers wrap: positions here count on, from the first byte seen.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from kbroker.wire.packets import RST, SYN, Segment

_MOST_WAITING: Final = 16 << 20
_WRAP: Final = 1 << 32
_PATIENCE: Final = 16  # acknowledgments: captures have packets of both directions out of order, too

# Bytes of the stream, or how many are lost.
Piece = bytes | int


class Stream:
    def __init__(self) -> None:
        self._next: int | None = None  # position of the next byte
        self._waiting: dict[
            int, tuple[bytes, int]
        ] = {}  # position → bytes, and how many behind them are missing
        self._waiting_bytes = 0
        self._doubts = 0  # acknowledgments of what is missing at present

    @property
    def has_begun(self) -> bool:
        return self._next is not None

    def take(self, segment: Segment) -> Iterator[Piece]:
        """What is in order now."""
        sequence = segment.sequence
        if segment.flags & SYN:
            if self._next is None:
                self._next = sequence + 1
            sequence += 1
        if segment.flags & RST or not (segment.data or segment.missing):
            return
        if self._next is None:
            self._next = sequence
        position = self._position(sequence)
        size = len(segment.data) + segment.missing
        known = self._waiting.get(position)
        if position + size > self._next and (known is None or len(known[0]) < len(segment.data)):
            self._waiting[position] = segment.data, segment.missing
            self._waiting_bytes += len(segment.data)
        yield from self._in_order()
        if self._waiting_bytes > _MOST_WAITING:
            yield from self._pass_gap()

    def acknowledged(self, sequence: int) -> Iterator[Piece]:
        """The receiver has everything below `sequence`: what is missing of that was not captured."""
        if self._next is None:
            return
        if not self._waiting or self._position(sequence) <= self._next:
            self._doubts = 0
            return
        self._doubts += 1
        if self._doubts > _PATIENCE:
            self._doubts = 0
            yield from self._pass_gap()

    def end(self) -> Iterator[Piece]:
        """Nothing comes any more."""
        while self._waiting:
            yield from self._pass_gap()

    def _position(self, sequence: int) -> int:
        """The position that is nearest to the next byte's."""
        assert self._next is not None
        distance = (sequence - self._next) % _WRAP
        return self._next + (distance if distance < _WRAP // 2 else distance - _WRAP)

    def _in_order(self) -> Iterator[Piece]:
        assert self._next is not None
        while self._waiting:
            position = min(self._waiting)
            if position > self._next:
                return
            data, missing = self._waiting.pop(position)
            self._waiting_bytes -= len(data)
            end = position + len(data) + missing
            new = data[self._next - position :]
            if new:
                self._next += len(new)
                yield new
            if end > self._next:
                yield end - self._next
                self._next = end

    def _pass_gap(self) -> Iterator[Piece]:
        assert self._next is not None
        position = min(self._waiting)
        if position > self._next:
            yield position - self._next
            self._next = position
        yield from self._in_order()
