"""Spans as OTLP has them: ExportTraceServiceRequest in protobuf, with OpenTelemetry's names of attributes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kbroker import __version__
from kbroker.observability.protobuf import attributes, fixed64, message, number, string
from kbroker.observability.traces.spans import ERROR, Span, key_document
from kbroker.storage.trace_events import FETCHED, RECEIVED

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
    scope = string(1, "kbroker.traces") + string(2, __version__)
    scope_spans = message(1, scope) + b"".join(message(2, _span(each)) for each in spans)
    resource_spans = message(1, attributes(1, resource)) + message(2, scope_spans)
    return message(1, resource_spans)


def _span(span: Span) -> bytes:
    parts = [
        message(1, span.trace_id),
        message(2, span.span_id),
        message(4, span.parent_id) if any(span.parent_id) else b"",
        string(5, f"{span.event} {span.topic}"),
        number(6, _KINDS.get(span.event, _INTERNAL)),
        fixed64(7, span.begin_ns),
        fixed64(8, span.end_ns),
        attributes(9, _named(span)),
    ]
    if span.status == ERROR:
        reason = str(span.attributes.get("error", span.event))
        parts.append(message(15, string(2, reason) + number(3, _STATUS_ERROR)))
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
