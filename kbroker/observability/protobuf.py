"""Protobuf by hand: OTLP is a few messages, and OpenTelemetry's library takes half a second and 20 MB.

A field is its number and wire type, then a varint (0), eight bytes (1), length and bytes (2), or four bytes
(5).
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Mapping

_FIXED64 = struct.Struct("<Q")


class InvalidProtobuf(ValueError):
    """Bytes that are no message."""


# reading


def fields(data: bytes) -> Iterator[tuple[int, int, bytes | int]]:
    """Number, wire type and value of each field: a varint as a number, all else as its bytes."""
    position, end = 0, len(data)
    while position < end:
        tag, position = _read_varint(data, position)
        wire_type = tag & 7
        value: bytes | int
        if wire_type == 0:
            value, position = _read_varint(data, position)
        else:
            if wire_type == 2:
                size, position = _read_varint(data, position)
            elif wire_type == 1:
                size = 8
            elif wire_type == 5:
                size = 4
            else:
                raise InvalidProtobuf(f"there is no wire type {wire_type} here")
            begin, position = position, position + size
            if position > end:
                raise InvalidProtobuf("a field ends after its message")
            value = data[begin:position]
        if tag < 8:
            raise InvalidProtobuf("a field has no number 0")
        yield tag >> 3, wire_type, value


def _read_varint(data: bytes, position: int) -> tuple[int, int]:
    value = shift = 0
    try:
        while True:
            byte = data[position]
            position += 1
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value, position
            shift += 7
            if shift > 63:
                raise InvalidProtobuf("a number has more than ten bytes")
    except IndexError:
        raise InvalidProtobuf("the message ends in a number") from None


# writing


def attributes(field: int, named: Mapping[str, str | int]) -> bytes:
    """OpenTelemetry's KeyValues."""
    return b"".join(_key_values(field, named.items()))


def _key_values(field: int, items: Iterable[tuple[str, str | int]]) -> Iterable[bytes]:
    for name, value in items:
        held = string(1, value) if isinstance(value, str) else number(3, value)
        yield message(field, string(1, name) + message(2, held))


def varint(value: int) -> bytes:
    value &= 0xFFFFFFFFFFFFFFFF
    encoded = bytearray()
    while value > 0x7F:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


def number(field: int, value: int) -> bytes:
    return varint(field << 3) + varint(value)


def encoded(field: int, wire_type: int, value: bytes | int) -> bytes:
    """What `fields` read."""
    tag = varint(field << 3 | wire_type)
    if isinstance(value, int):
        return tag + varint(value)
    return tag + (varint(len(value)) + value if wire_type == 2 else value)


def fixed64(field: int, value: int) -> bytes:
    return varint(field << 3 | 1) + _FIXED64.pack(value)


def message(field: int, value: bytes) -> bytes:
    """Also of bytes."""
    return varint(field << 3 | 2) + varint(len(value)) + value


def string(field: int, value: str) -> bytes:
    return message(field, value.encode(errors="replace"))
