"""The wire types a message field can have.

A type is data only: its struct format where the width is fixed, its default, and the name of the construct
type that defines it (looked up by `reference`, so that the server never loads construct). How a value is laid
out also depends on the message version (flexible or not) and on nullability; the codecs decide that.
"""

from __future__ import annotations

from collections.abc import Sequence, Sized
from typing import Any, Final, TypeAlias

Buffer: TypeAlias = bytes | bytearray | memoryview
# What a RECORDS field may hold when it is encoded. Decoding always gives a memoryview.
Records: TypeAlias = Buffer | Sequence[Buffer | Sized]  # Sized: something else that has the bytes

ZERO_UUID: Final = bytes(16)
RESERVED_UUIDS: Final = (ZERO_UUID, bytes(15) + b"\x01")  # none, and that of the metadata topic


class ProtocolError(ValueError):
    """Bytes that are no valid message, or a message that its version cannot carry."""


class FixedType:
    """A value of fixed width: `format` is its struct code, big-endian."""

    __slots__ = ("construct_name", "default", "format", "name", "size")

    def __init__(self, name: str, format: str, size: int, default: Any, construct_name: str) -> None:
        self.name = name
        self.format = format
        self.size = size
        self.default = default
        self.construct_name = construct_name

    def __repr__(self) -> str:
        return self.name.upper()


class LengthType:
    """Bytes behind a length: int16 or int32, or an unsigned varint of length + 1 in flexible versions."""

    __slots__ = ("construct_name", "default", "name", "prefix")

    def __init__(self, name: str, prefix: FixedType, default: Any, construct_name: str) -> None:
        self.name = name
        self.prefix = prefix
        self.default = default
        self.construct_name = construct_name

    def __repr__(self) -> str:
        return self.name.upper()


class Array:
    """A list of values of one type, which is a primitive or a struct class."""

    __slots__ = ("of",)

    def __init__(self, of: FixedType | LengthType | type[Any]) -> None:
        self.of = of

    def __repr__(self) -> str:
        return f"Array({self.of.__name__ if isinstance(self.of, type) else self.of!r})"


FieldType: TypeAlias = FixedType | LengthType | Array | type[Any]

INT8: Final = FixedType("int8", "b", 1, 0, "Int8sb")
INT16: Final = FixedType("int16", "h", 2, 0, "Int16sb")
INT32: Final = FixedType("int32", "i", 4, 0, "Int32sb")
INT64: Final = FixedType("int64", "q", 8, 0, "Int64sb")
UINT16: Final = FixedType("uint16", "H", 2, 0, "Int16ub")
UINT32: Final = FixedType("uint32", "I", 4, 0, "Int32ub")
FLOAT64: Final = FixedType("float64", "d", 8, 0.0, "Float64b")
BOOL: Final = FixedType("bool", "?", 1, False, "Flag")
UUID: Final = FixedType("uuid", "16s", 16, ZERO_UUID, "Bytes")
STRING: Final = LengthType("string", INT16, "", "GreedyString")
BYTES: Final = LengthType("bytes", INT32, b"", "GreedyBytes")
RECORDS: Final = LengthType("records", INT32, None, "GreedyBytes")
