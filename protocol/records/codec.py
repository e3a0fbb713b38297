"""The records inside a record batch of format 2, without the batch around them.

A payload is `record_count` records, one after the other. One record:

    length          varint    bytes that follow
    attributes      int8      unused, 0
    timestamp delta varlong   from the batch's base timestamp
    offset delta    varint    from the batch's base offset
    key length      varint    -1: no key
    key             bytes
    value length    varint    -1: no value, a tombstone
    value           bytes
    header count    varint
      key length    varint
      key           bytes     UTF-8
      value length  varint    -1: null
      value         bytes

Varints are zigzag and little endian, seven bits to a byte: at most 5 bytes for an int32, 10 for an int64.

Decoding is bounded by the payload: every length is checked against what remains of its record before it is
used, and a payload that is not exactly its records raises InvalidRecord.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import cache, lru_cache
from typing import NamedTuple

from kbroker.protocol.records.errors import InvalidRecord

Headers = tuple[tuple[str, bytes | None], ...]

NO_TIMESTAMP = -1


class Record(NamedTuple):
    """One record. Writers give the timestamp and the contents; readers get the offsets with them."""

    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: Headers = ()
    offset: int = 0
    offset_delta: int = 0


class RecordSpan(NamedTuple):
    """Where one record lies in its payload, for whoever keeps or drops records without decoding them."""

    start: int
    end: int
    offset_delta: int
    timestamp_delta: int
    key: bytes | None
    has_value: bool


_ZIGZAG = tuple((byte >> 1) ^ -(byte & 1) for byte in range(128))


def _long_varint(data: bytes, pos: int) -> tuple[int, int]:
    """The value whose first byte is at pos - 1 and says that more follow; with the position behind it."""
    raw = data[pos - 1] & 0x7F
    shift = 7
    while True:
        byte = data[pos]
        pos += 1
        raw |= (byte & 0x7F) << shift
        if byte < 0x80:
            break
        shift += 7
        if shift > 63:
            raise InvalidRecord("a varint of more than 10 bytes")
    if raw >> 64:
        raise InvalidRecord("a varint of more than 64 bits")
    return (raw >> 1) ^ -(raw & 1), pos


def decode_records(
    data: bytes, record_count: int, base_offset: int, base_timestamp: int, log_append_time: int | None = None
) -> Iterator[Record]:
    """Yield the records of a payload. `log_append_time` replaces every timestamp, where the batch has one."""
    return _loops()[0](data, record_count, base_offset, base_timestamp, log_append_time)


def record_spans(data: bytes, record_count: int) -> Iterator[RecordSpan]:
    """Yield where each record of a payload lies, with its key; headers are not looked at."""
    return _loops()[1](data, record_count)


@cache
def _loops() -> tuple[Callable[..., Iterator[Record]], Callable[..., Iterator[RecordSpan]]]:
    """The functions that `decode_records` and `record_spans` stand for."""
    from kbroker.protocol.records.decoder_source import DECODE_RECORDS, RECORD_SPANS, compiled

    names = {
        "InvalidRecord": InvalidRecord,
        "Record": Record,
        "RecordSpan": RecordSpan,
        "decode_headers": _decode_headers,
        "long_varint": _long_varint,
        "zigzag": _ZIGZAG,
    }
    return compiled(DECODE_RECORDS, "decode_records", names), compiled(RECORD_SPANS, "record_spans", names)


def _varint(data: bytes, pos: int) -> tuple[int, int]:
    byte = data[pos]
    if byte < 0x80:
        return _ZIGZAG[byte], pos + 1
    return _long_varint(data, pos + 1)


def _decode_headers(data: bytes, pos: int, end: int, index: int) -> tuple[Headers, int]:
    count, pos = _varint(data, pos)
    if not 0 <= count <= (end - pos) // 2:  # a header takes two bytes at least
        raise InvalidRecord(f"{count} headers in {end - pos} bytes", index)
    headers: list[tuple[str, bytes | None]] = []
    for _ in range(count):
        size, pos = _varint(data, pos)
        if not 0 <= size <= end - pos:
            raise InvalidRecord(f"a header key of {size} bytes where {end - pos} remain", index)
        # Kafka does not check that this is UTF-8: whatever it is, it is written again as it was read.
        key = data[pos : pos + size].decode("utf-8", "surrogateescape")
        pos += size
        size, pos = _varint(data, pos)
        if size > end - pos:
            raise InvalidRecord(f"a header value of {size} bytes where {end - pos} remain", index)
        if size >= 0:
            headers.append((key, data[pos : pos + size]))
            pos += size
        else:
            headers.append((key, None))
    return tuple(headers), pos


@lru_cache(4096)
def encode_varint(value: int) -> bytes:
    zigzag = (value << 1) ^ (value >> 63)
    if zigzag >> 64:
        raise InvalidRecord(f"{value} is no int64")
    out = bytearray()
    while zigzag > 0x7F:
        out.append(zigzag & 0x7F | 0x80)
        zigzag >>= 7
    out.append(zigzag)
    return bytes(out)


def encode_record(record: Record, timestamp_delta: int, offset_delta: int) -> bytes:
    varint = encode_varint
    _, key, value, headers, _, _ = record
    body = b"".join(
        (
            b"\x00",
            varint(timestamp_delta),
            varint(offset_delta),
            varint(-1 if key is None else len(key)),
            key or b"",
            varint(-1 if value is None else len(value)),
            value or b"",
            _encode_headers(headers) if headers else b"\x00",
        )
    )
    return varint(len(body)) + body


def _encode_headers(headers: Headers) -> bytes:
    parts = [encode_varint(len(headers))]
    for name, content in headers:
        raw = name.encode("utf-8", "surrogateescape")
        parts += (encode_varint(len(raw)), raw)
        parts += (b"\x01",) if content is None else (encode_varint(len(content)), content)
    return b"".join(parts)


def encode_records(records: Iterable[Record], base_timestamp: int) -> bytes:
    """The payload of `records`, with offset deltas 0, 1, 2, …"""
    return b"".join(
        [encode_record(record, record[0] - base_timestamp, index) for index, record in enumerate(records)]
    )
