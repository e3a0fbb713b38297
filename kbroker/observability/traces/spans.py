"""A span: one thing that happened to one record. Its form in the ring, and as JSON."""

from __future__ import annotations

import base64
import json
import struct
from typing import Any, Final, NamedTuple

from kbroker.storage.trace_events import EVENTS, FAILURES

OK: Final = "ok"
ERROR: Final = "error"
STATUSES: Final = (OK, ERROR)

Attributes = dict[str, Any]
"""Strings and numbers."""

_MOST_KEY_BYTES = 256
_MOST_CHARACTERS = 256
# Trace, span, parent; topic id, partition, offset; begin and end; event, status; lengths of topic and key.
_FIXED = struct.Struct(">16s8s8s16siqQQBBHh")
FIXED_BYTES: Final = _FIXED.size


class Span(NamedTuple):
    trace_id: bytes
    span_id: bytes
    parent_id: bytes
    topic_id: bytes
    topic: str
    partition: int
    offset: int
    event: str
    status: str
    begin_ns: int
    end_ns: int
    key: bytes | None
    """Of a long one, its beginning."""
    attributes: Attributes

    @property
    def is_failure(self) -> bool:
        return self.status == ERROR

    def packed(self) -> bytes:
        topic = self.topic.encode()
        key = b"" if self.key is None else self.key
        fixed = _FIXED.pack(
            self.trace_id,
            self.span_id,
            self.parent_id,
            self.topic_id,
            self.partition,
            self.offset,
            self.begin_ns,
            self.end_ns,
            EVENTS.index(self.event),
            STATUSES.index(self.status),
            len(topic),
            -1 if self.key is None else len(key),
        )
        more = json.dumps(self.attributes, separators=(",", ":")).encode() if self.attributes else b""
        return b"".join((fixed, topic, key, more))

    def document(self) -> dict[str, Any]:
        """As JSON has it."""
        return {
            "traceId": self.trace_id.hex(),
            "spanId": self.span_id.hex(),
            "parentSpanId": self.parent_id.hex() if any(self.parent_id) else None,
            "event": self.event,
            "status": self.status,
            "startTimeUnixNano": str(self.begin_ns),
            "endTimeUnixNano": str(self.end_ns),
            "topic": self.topic,
            "partition": self.partition,
            "offset": self.offset,
            **key_document(self.key),
            "attributes": self.attributes,
        }


class Head(NamedTuple):
    """What of a span has a fixed place."""

    trace_id: bytes
    span_id: bytes
    parent_id: bytes
    topic_id: bytes
    partition: int
    offset: int
    begin_ns: int
    end_ns: int
    event: int
    status: int
    topic_bytes: int
    key_bytes: int


def read_head(packed: bytes) -> Head:
    return Head._make(_FIXED.unpack_from(packed))


def event_of(number: int) -> str:
    """One that a newer version has written is not known here."""
    return EVENTS[number] if number < len(EVENTS) else "unknown"


def topic_of(head: Head, packed: bytes) -> str:
    return packed[FIXED_BYTES : FIXED_BYTES + head.topic_bytes].decode()


def key_of(head: Head, packed: bytes) -> bytes | None:
    begin = FIXED_BYTES + head.topic_bytes
    return None if head.key_bytes < 0 else packed[begin : begin + head.key_bytes]


def unpacked(packed: bytes) -> Span:
    head = read_head(packed)
    more = packed[FIXED_BYTES + head.topic_bytes + max(head.key_bytes, 0) :]
    return Span(
        head.trace_id,
        head.span_id,
        head.parent_id,
        head.topic_id,
        topic_of(head, packed),
        head.partition,
        head.offset,
        event_of(head.event),
        STATUSES[head.status],
        head.begin_ns,
        head.end_ns,
        key_of(head, packed),
        json.loads(more) if more else {},
    )


def status_of(event: str) -> str:
    return ERROR if event in FAILURES else OK


def kept_key(key: bytes | None) -> bytes | None:
    return key if key is None else key[:_MOST_KEY_BYTES]


def kept_text(value: str | int) -> str | int:
    return value[:_MOST_CHARACTERS] if isinstance(value, str) else value


def key_document(key: bytes | None) -> dict[str, str | None]:
    """A key that is no text stands in base64."""
    if key is None:
        return {"key": None}
    try:
        return {"key": key.decode()}
    except UnicodeDecodeError:
        return {"keyBase64": base64.b64encode(key).decode()}
