"""Records as JSON, ready to be sent; one with a long value in turns with all other requests."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from kbroker.http.answers import encoded
from kbroker.http.compact_json import compact_bytes, strictly_compact_in_steps
from kbroker.http.json_documents import AT_ONCE_BYTES, parsed_strictly
from kbroker.http.json_records import Encoding, json_of

if TYPE_CHECKING:
    from kbroker.protocol.records import Record
    from kbroker.requests.long_requests import Steps

_DEEPEST: Final = 100  # as json_records has it
_AT_ONCE: Final = 48 * 1024  # bytes, in whole groups of base64


def shown(
    record: Record, encodings: tuple[Encoding, Encoding], before: Mapping[str, Any] | None = None
) -> bytes | Steps[bytes]:
    """``before``: members that stand before its own."""
    value = record.value
    if value is not None and len(value) > AT_ONCE_BYTES:
        return _long_record(record, bytes(value), encodings, before or {})
    members = json_of(record, *encodings)
    return encoded({**before, **members} if before else members)


def _long_record(
    record: Record, value: bytes, encodings: tuple[Encoding, Encoding], before: Mapping[str, Any]
) -> Steps[bytes]:
    members = json_of(record._replace(value=None), *encodings)
    headers = members.pop("headers")
    del members["value"]
    content = yield from _long_value(value, encodings[1])
    head = encoded({**before, **members})[:-1]
    return b"".join((head, b",", content, b',"headers":', encoded(headers), b"}"))


def _long_value(value: bytes, encoding: Encoding) -> Steps[bytes]:
    """In this encoding, or in the next one that it has."""
    if encoding is Encoding.JSON:
        try:
            document = yield from parsed_strictly(value, _DEEPEST)
            return b'"value":' + (yield from strictly_compact_in_steps(document))
        except (ValueError, RecursionError):
            pass
    if encoding is not Encoding.BASE64:
        try:
            return b'"valueText":"' + (yield from _text(value)) + b'"'
        except UnicodeDecodeError:
            pass
    written = bytearray(b'"valueBase64":"')
    for start in range(0, len(value), _AT_ONCE):
        written += b64encode(value[start : start + _AT_ONCE])
        yield None
    return bytes(written + b'"')


def _text(value: bytes) -> Steps[bytes]:
    written = bytearray()
    start = 0
    while start < len(value):
        end = min(start + _AT_ONCE, len(value))
        while end < len(value) and value[end] & 0xC0 == 0x80 and end > start + _AT_ONCE - 4:
            end -= 1  # not within a character
        written += compact_bytes(value[start:end].decode())[1:-1]
        start = end
        yield None
    return bytes(written)
