"""W3C trace context of a record: which trace it is part of, and whether that is sampled.

Ids that the broker gives follow from where a record is: who knows its topic id, partition and offset knows
them, too, without asking. So what happens to a record later finds its parent, also after a restart.
"""

from __future__ import annotations

import re
import struct
from hashlib import blake2b
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from kbroker.protocol.records import Headers

TRACEPARENT: Final = "traceparent"
NO_PARENT: Final = bytes(8)
_SAMPLED = 1
# Version 0, and later ones, which may have more behind it.
_TRACEPARENT = re.compile(rb"([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?", re.DOTALL)
_RECORD = struct.Struct(">16sIq")


class TraceContext(NamedTuple):
    trace_id: bytes
    parent_id: bytes
    """NO_PARENT: the broker's span begins the trace."""
    sampled: bool


def parsed(value: bytes) -> TraceContext | None:
    """None: the header is not what the standard says, and counts as missing."""
    found = _TRACEPARENT.fullmatch(value)
    if found is None:
        return None
    version, trace, parent, flags, more = found.groups()
    if version == b"ff" or (version == b"00" and more is not None):
        return None
    trace_id, parent_id = bytes.fromhex(trace.decode()), bytes.fromhex(parent.decode())
    if not any(trace_id) or not any(parent_id):
        return None
    return TraceContext(trace_id, parent_id, bool(int(flags, 16) & _SAMPLED))


def of_headers(headers: Headers) -> TraceContext | None:
    """That of the last header, as clients read it."""
    for name, value in reversed(headers):
        if name == TRACEPARENT and value is not None:
            return parsed(value)
    return None


class Sampling:
    """What a topic's kbroker.trace.sampling says: `parent`, or the share of records without a context."""

    def __init__(self, text: str) -> None:
        ratio = 0.0 if text == "parent" else float(text)
        self._bound = round(ratio * 2**64)

    @property
    def by_parent_only(self) -> bool:
        return not self._bound

    def context(self, topic_id: bytes, partition: int, offset: int, headers: Headers) -> TraceContext | None:
        """Of a record that is sampled: its own context decides, where it has one."""
        given = of_headers(headers) if headers else None
        if given is not None:
            return given if given.sampled else None
        if not self._bound:
            return None
        trace_id = blake2b(_RECORD.pack(topic_id, partition, offset), digest_size=16).digest()
        # As OpenTelemetry samples by trace id, so that others who do agree.
        if int.from_bytes(trace_id[8:]) >= self._bound:
            return None
        return TraceContext(trace_id, NO_PARENT, True)


def span_id(topic_id: bytes, partition: int, offset: int, *what: object) -> bytes:
    """Of the span that tells this of the record."""
    place = _RECORD.pack(topic_id, partition, offset)
    return blake2b(place + "\0".join(map(str, what)).encode(), digest_size=8).digest()
