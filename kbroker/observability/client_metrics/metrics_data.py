"""What a client pushed: OpenTelemetry's MetricsData in protobuf, read step by step.

Numbers are read: gauges and sums. Histograms and summaries are not; Kafka's clients have none. What is read
is what a stranger sent: each step is short, and how many are taken is for the caller to bound.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import NamedTuple

from kbroker.observability.protobuf import InvalidProtobuf, fields

_DOUBLE = struct.Struct("<d")
_INT64 = struct.Struct("<q")
_MOST_FIELDS = 256  # of what is read in one step
_DELTA = 1
_NO_VALUE = 1

Attributes = dict[str, str]


class Point(NamedTuple):
    """A number that a client measured."""

    name: str
    is_counter: bool
    is_delta: bool
    """Since the push before, not since the start of the client."""
    attributes: Attributes
    value: int | float


class Resource(NamedTuple):
    """What the client says of itself."""

    attributes: Attributes


class Unread(NamedTuple):
    """A metric of another kind."""

    name: str


Step = Point | Resource | Unread | None


def read(data: bytes) -> Iterator[Step]:
    """What is in it, None for a step that found nothing. Raises InvalidProtobuf."""
    for number, resource_metrics in _messages(data):
        if number != 1:
            yield None
            continue
        for number, inner in _messages(resource_metrics):
            if number == 1:
                yield Resource(attributes_of(inner, 1))
            elif number == 2:
                yield from _scope(inner)
            else:
                yield None


def _scope(data: bytes) -> Iterator[Step]:
    for number, metric in _messages(data):
        if number == 2:
            yield from _metric(metric)
        else:
            yield None


def _metric(data: bytes) -> Iterator[Step]:
    name, kind, points = "", 0, b""
    for number, value in _few(data):
        if number == 1 and isinstance(value, bytes):
            name = _text(value)
        elif number in (5, 7, 9, 10, 11) and isinstance(value, bytes):
            kind, points = number, value
    if kind == 5:
        yield from _points(name, points, is_counter=False, is_delta=False)
    elif kind == 7:
        temporality, is_monotonic = 0, 0
        for number, _, value in fields(points):
            if number == 2 and isinstance(value, int):
                temporality = value
            elif number == 3 and isinstance(value, int):
                is_monotonic = value
            yield None
        yield from _points(name, points, is_counter=bool(is_monotonic), is_delta=temporality == _DELTA)
    else:
        yield Unread(name) if kind else None


def _points(name: str, data: bytes, *, is_counter: bool, is_delta: bool) -> Iterator[Step]:
    for number, point in _messages(data):
        if number != 1:
            yield None
            continue
        value, flags = _value(point)
        if value is None or flags & _NO_VALUE:
            yield None
        else:
            yield Point(name, is_counter, is_delta, attributes_of(point, 7), value)


def _value(point: bytes) -> tuple[int | float | None, int]:
    found: int | float | None = None
    flags = 0
    for number, value in _few(point):
        if isinstance(value, bytes) and len(value) == 8:
            if number == 4:
                (found,) = _DOUBLE.unpack(value)
            elif number == 6:
                (found,) = _INT64.unpack(value)
        elif number == 8 and isinstance(value, int):
            flags = value
    return found, flags


def attributes_of(data: bytes, field: int) -> Attributes:
    """The KeyValues of a message, as text; without those that are lists and the like."""
    found: Attributes = {}
    for number, pair in _few(data):
        if number != field or not isinstance(pair, bytes):
            continue
        name, text = "", None
        for inner, value in _few(pair):
            if isinstance(value, bytes):
                if inner == 1:
                    name = _text(value)
                elif inner == 2:
                    text = _any_value(value)
        if name and text is not None:
            found[name] = text
    return found


def _any_value(data: bytes) -> str | None:
    """As text; None of what is no plain value."""
    for number, value in _few(data):
        if isinstance(value, int):
            if number == 2:
                return "true" if value else "false"
            if number == 3:
                return str(value - (1 << 64) if value >> 63 else value)
        elif number == 1:
            return _text(value)
        elif number == 4 and len(value) == 8:
            return repr(_DOUBLE.unpack(value)[0])
    return None


def _messages(data: bytes) -> Iterator[tuple[int, bytes]]:
    """The fields that are messages; for others number 0."""
    for number, wire_type, value in fields(data):
        if wire_type == 2 and isinstance(value, bytes):
            yield number, value
        else:
            yield 0, b""


def _few(data: bytes) -> Iterator[tuple[int, bytes | int]]:
    for count, (number, _, value) in enumerate(fields(data)):
        if count == _MOST_FIELDS:
            raise InvalidProtobuf("a message has too many fields")
        yield number, value


def _text(value: bytes) -> str:
    return value.decode(errors="replace")
