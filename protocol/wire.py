"""The parts of the wire format that generated code calls: longer varints, tagged fields, record sizes.

Unsigned varints are at most five bytes and 32 bits. A string is at most 32767 bytes, in compact form too, as
in Kafka.
"""

from __future__ import annotations

from collections.abc import Sequence, Sized
from typing import Final

from kbroker.protocol.types import Buffer, ProtocolError, Records

MAX_STRING_BYTES: Final = 0x7FFF


def finish_uvarint(buf: memoryview, pos: int, value: int) -> tuple[int, int]:
    """The rest of an unsigned varint whose first byte, `value`, has its high bit set."""
    byte = buf[pos]
    if byte < 0x80:
        return value & 0x7F | byte << 7, pos + 1
    value = value & 0x7F | (byte & 0x7F) << 7
    byte = buf[pos + 1]
    if byte < 0x80:
        return value | byte << 14, pos + 2
    value |= (byte & 0x7F) << 14
    byte = buf[pos + 2]
    if byte < 0x80:
        return value | byte << 21, pos + 3
    value |= (byte & 0x7F) << 21
    byte = buf[pos + 3]
    if byte < 0x10:
        return value | byte << 28, pos + 4
    raise ProtocolError("a varint of more than 32 bits")


def read_uvarint(buf: memoryview, pos: int) -> tuple[int, int]:
    value = buf[pos]
    return (value, pos + 1) if value < 0x80 else finish_uvarint(buf, pos + 1, value)


def finish_string_length(buf: memoryview, pos: int, value: int) -> tuple[int, int]:
    """As finish_uvarint, for the length + 1 of a compact string."""
    value, pos = finish_uvarint(buf, pos, value)
    if value > MAX_STRING_BYTES + 1:
        raise ProtocolError(f"a string of {value - 1} bytes")
    return value, pos


def uvarint(value: int) -> bytes:
    if value < 0x80:
        return bytes((value,))
    if value < 0x4000:
        return bytes((value & 0x7F | 0x80, value >> 7))
    if value < 0x200000:
        return bytes((value & 0x7F | 0x80, value >> 7 & 0x7F | 0x80, value >> 14))
    return bytes((value & 0x7F | 0x80, value >> 7 & 0x7F | 0x80, value >> 14 & 0x7F | 0x80)) + uvarint(
        value >> 21
    )


def compact_string_length(length_plus_one: int) -> bytes:
    """The prefix of a compact string too long for one byte of it."""
    if length_plus_one > MAX_STRING_BYTES + 1:
        raise ProtocolError(f"a string of {length_plus_one - 1} bytes")
    return uvarint(length_plus_one)


def skip_tagged_fields(buf: memoryview, pos: int, count: int, limit: int) -> int:
    """The position after tagged fields that no declaration knows. `count` is the varint's first byte."""
    if count > 0x7F:
        count, pos = finish_uvarint(buf, pos, count)
    for _ in range(count):
        _tag, pos = read_uvarint(buf, pos)
        size, pos = read_uvarint(buf, pos)
        pos += size
        if pos > limit:
            raise ProtocolError("a tagged field ends beyond the frame")
    return pos


def records_parts(records: Records) -> tuple[int, Sequence[Buffer | Sized]]:
    """The size of a RECORDS value and its buffers that are not empty, none of them copied."""
    if isinstance(records, memoryview):
        size = records.nbytes
    elif isinstance(records, bytes | bytearray):
        size = len(records)
    else:
        parts = [part for part in records if len(part)]
        return sum(map(len, parts)), parts
    return size, (records,) if size else ()


def null_error(name: str) -> ProtocolError:
    return ProtocolError(f"{name} is null")


def count_error(name: str, count: int) -> ProtocolError:
    return ProtocolError(f"{name} has {count} elements, more than the frame can hold")


def tag_error(name: str) -> ProtocolError:
    return ProtocolError(f"tagged field {name} does not fill the size it states")


def absent_error(name: str) -> ProtocolError:
    return ProtocolError(f"this version has no field {name}, but it is set")
