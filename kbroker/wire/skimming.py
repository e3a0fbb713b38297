"""A large frame read as it arrives: its fields are kept, of long records only the beginning.

What is kept is a frame again, with the lengths of its records as short as they are, so that all its other
fields can be explained. Follows the declarations, as the codecs do. Bytes that are no such message end it.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import Any, Final

from kbroker.protocol.message import schema_of
from kbroker.protocol.types import RECORDS, STRING, Array, FieldType, FixedType, LengthType, ProtocolError

_RECORD_BYTES: Final = 4096  # of each RECORDS field
_LARGEST_VALUE: Final = 1 << 20  # of a field that is kept as a whole

_Walk = Generator[int, bytes, Any]  # yields how many bytes it wants, or, below 0, how many may pass


class Skim:
    def __init__(
        self, parts: Sequence[tuple[type[Any], int]], limit: int, endpoints_tag: int | None = None
    ) -> None:
        """`parts`: header and message with their versions; `limit`: of the bytes that are kept.

        `endpoints_tag`: of the message, the tagged field to look for.
        """
        self.kept = bytearray()
        self.position = 0  # in the frame
        self.endpoints_at: int | None = None  # where that tag stands
        self.is_broken = False
        self._limit = limit
        self._full = False
        self._endpoints_tag = endpoints_tag
        self._waiting = bytearray()
        self._walk = self._frame(parts)
        self._wanted = next(self._walk)

    def feed(self, data: bytes | memoryview) -> None:
        view = memoryview(data)
        while view and self._wanted and not self.is_broken:
            if self._wanted < 0:
                passing = min(-self._wanted, len(view))
                self._wanted += passing
                self.position += passing
                view = view[passing:]
                if not self._wanted:
                    self._go_on(b"")
                continue
            taken = view[: self._wanted - len(self._waiting)]
            self._waiting += taken
            self.position += len(taken)
            view = view[len(taken) :]
            if len(self._waiting) == self._wanted:
                data = bytes(self._waiting)
                self._waiting.clear()
                self._go_on(data)

    def _go_on(self, data: bytes) -> None:
        try:
            self._wanted = self._walk.send(data)
        except StopIteration:
            self._wanted = 0
        except ProtocolError:
            self.is_broken = True

    def _keep(self, data: bytes) -> None:
        if self._full or len(self.kept) + len(data) > self._limit:
            self._full = True
        else:
            self.kept += data

    def _frame(self, parts: Sequence[tuple[type[Any], int]]) -> _Walk:
        for cls, version in parts:
            last = cls is parts[-1][0]
            yield from self._struct(cls, version, schema_of(cls).is_flexible(version), is_message=last)

    def _struct(self, cls: type[Any], version: int, flexible: bool, *, is_message: bool = False) -> _Walk:
        for f in schema_of(cls):
            if f.present(version) and f.tag is None:
                yield from self._value(f.type, version, flexible and f.flexible, f.nullable(version))
        if flexible:
            for _ in range((yield from self._uvarint())):
                start = self.position
                tag = yield from self._uvarint()
                if is_message and tag == self._endpoints_tag:
                    self.endpoints_at = start
                yield from self._bytes((yield from self._uvarint()))

    def _value(self, type: FieldType, version: int, flexible: bool, nullable: bool) -> _Walk:
        if isinstance(type, FixedType):
            yield from self._bytes(type.size)
        elif isinstance(type, LengthType):
            if type is RECORDS:
                yield from self._records(flexible)
            else:
                width = 2 if type is STRING else 4
                yield from self._bytes((yield from self._length(width, flexible)))
        elif isinstance(type, Array):
            for _ in range((yield from self._length(4, flexible))):
                yield from self._value(type.of, version, flexible, False)
        elif not nullable or (yield from self._bytes(1))[0] < 0x80:
            yield from self._struct(type, version, flexible)

    def _records(self, flexible: bool) -> _Walk:
        size = yield from self._length(4, flexible, kept=False)
        shown = min(size, _RECORD_BYTES)
        if flexible:
            self._keep(_uvarint(shown + 1))
        else:
            self._keep(shown.to_bytes(4, "big", signed=True))
        if shown > 0:
            yield from self._bytes(shown)
        if size > shown:
            yield shown - size

    def _length(self, width: int, flexible: bool, *, kept: bool = True) -> Generator[int, bytes, int]:
        """Of text, bytes or a list; -1: null."""
        if flexible:
            return (yield from self._uvarint(kept=kept)) - 1
        data = yield width
        if kept:
            self._keep(data)
        return int.from_bytes(data, "big", signed=True)

    def _bytes(self, size: int) -> Generator[int, bytes, bytes]:
        if size > _LARGEST_VALUE:
            raise ProtocolError(f"a value of {size} bytes")
        if size <= 0:
            return b""
        data = yield size
        self._keep(data)
        return data

    def _uvarint(self, *, kept: bool = True) -> Generator[int, bytes, int]:
        value = 0
        for shift in range(0, 35, 7):
            byte = yield 1
            if kept:
                self._keep(byte)
            value |= (byte[0] & 0x7F) << shift
            if byte[0] < 0x80:
                return value
        raise ProtocolError("a varint of more than 32 bits")


def _uvarint(value: int) -> bytes:
    data = bytearray()
    while value > 0x7F:
        data.append(value & 0x7F | 0x80)
        value >>= 7
    data.append(value)
    return bytes(data)
