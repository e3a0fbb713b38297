"""Spans as OTLP has them: ExportTraceServiceRequest in protobuf, with OpenTelemetry's names of attributes.

Written by hand: it is a few fields, and OpenTelemetry's own library takes half a second and 20 MB to load.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping, Sequence

from kbroker import __version__
from kbroker.observability.traces.spans import ERROR, Span, key_document
from kbroker.storage.trace_events import FETCHED, RECEIVED

_FIXED64 = struct.Struct("<Q")
_INTERNAL, _SERVER, _PRODUCER, _CONSUMER = 1, 2, 4, 5  # kinds of spans
_STATUS_ERROR = 2
_KINDS = {RECEIVED: _SERVER, FETCHED: _SERVER}
_NAMES = {
    "group": "messaging.consumer.group.name",
    "client": "messaging.client.id",
    "bytes": "messaging.message.body.size",
    "member": "kbroker.member.id",
    "deliveryCount": "kbroker.delivery.count",
    "reason": "kbroker.reason",
    "deadLetterTopic": "kbroker.dead_letter.topic",
    "error": "error.message",
}


def encoded(spans: Sequence[Span], resource: Mapping[str, str | int]) -> bytes:
    """``resource``: what the spans come from, by OpenTelemetry's names."""
    scope = _string(1, "kbroker.traces") + _string(2, __version__)
    scope_spans = _message(1, scope) + b"".join(_message(2, _span(each)) for each in spans)
    resource_spans = _message(1, _attributes(1, resource)) + _message(2, scope_spans)
    return _message(1, resource_spans)


def _span(span: Span) -> bytes:
    parts = [
        _bytes(1, span.trace_id),
        _bytes(2, span.span_id),
        _bytes(4, span.parent_id) if any(span.parent_id) else b"",
        _string(5, f"{span.event} {span.topic}"),
        _number(6, _KINDS.get(span.event, _INTERNAL)),
        _fixed64(7, span.begin_ns),
        _fixed64(8, span.end_ns),
        _attributes(9, _named(span)),
    ]
    if span.status == ERROR:
        message = str(span.attributes.get("error", span.event))
        parts.append(_message(15, _string(2, message) + _number(3, _STATUS_ERROR)))
    return b"".join(parts)


def _named(span: Span) -> dict[str, str | int]:
    named: dict[str, str | int] = {
        "messaging.system": "kafka",
        "messaging.operation.name": span.event,
        "messaging.destination.name": span.topic,
        "messaging.destination.partition.id": str(span.partition),
        "messaging.kafka.offset": span.offset,
    }
    for value in key_document(span.key).values():
        if value is not None:
            named["messaging.kafka.message.key"] = value
    for name, value in span.attributes.items():
        named[_NAMES.get(name, f"kbroker.{name}")] = value
    return named


# protobuf: a field is its number and wire type, then a varint (0), eight bytes (1), or length and bytes (2)


def _attributes(field: int, attributes: Mapping[str, str | int]) -> bytes:
    return b"".join(_key_values(field, attributes.items()))


def _key_values(field: int, items: Iterable[tuple[str, str | int]]) -> Iterable[bytes]:
    for name, value in items:
        held = _string(1, value) if isinstance(value, str) else _number(3, value)
        yield _message(field, _string(1, name) + _message(2, held))


def _varint(value: int) -> bytes:
    value &= 0xFFFFFFFFFFFFFFFF
    encoded = bytearray()
    while value > 0x7F:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


def _number(field: int, value: int) -> bytes:
    return _varint(field << 3) + _varint(value)


def _fixed64(field: int, value: int) -> bytes:
    return _varint(field << 3 | 1) + _FIXED64.pack(value)


def _bytes(field: int, value: bytes) -> bytes:
    return _varint(field << 3 | 2) + _varint(len(value)) + value


def _string(field: int, value: str) -> bytes:
    return _bytes(field, value.encode(errors="replace"))


_message = _bytes
