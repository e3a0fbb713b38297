"""DER, as much as certificates and keys need: values of a tag, a length and a content."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

SEQUENCE, SET, INTEGER, OCTET_STRING, OBJECT_IDENTIFIER = 0x30, 0x31, 0x02, 0x04, 0x06


class Malformed(ValueError):
    """The bytes are not DER."""


@dataclass(frozen=True, slots=True)
class Value:
    tag: int
    content: bytes
    encoded: bytes

    def __iter__(self) -> Iterator[Value]:
        """The values in a constructed one."""
        return values(self.content)

    def child(self, index: int, tag: int) -> Value:
        for number, value in enumerate(self):
            if number == index and value.tag == tag:
                return value
        raise Malformed(f"no value of tag {tag:#x} at {index}")


def values(data: bytes) -> Iterator[Value]:
    position = 0
    while position < len(data):
        start = position
        tag = data[position]
        if tag & 0x1F == 0x1F:
            raise Malformed("a tag of several bytes")
        length, position = _length(data, position + 1)
        end = position + length
        if end > len(data):
            raise Malformed("a value that ends too soon")
        yield Value(tag, data[position:end], data[start:end])
        position = end


def first(data: bytes) -> Value:
    for value in values(data):
        return value
    raise Malformed("nothing there")


def object_identifier(content: bytes) -> str:
    """The dotted form."""
    arcs: list[int] = []
    arc = 0
    for byte in content:
        arc = arc << 7 | byte & 0x7F
        if not byte & 0x80:
            arcs.append(arc)
            arc = 0
    if not arcs:
        raise Malformed("an empty object identifier")
    head = min(arcs[0] // 40, 2)
    return ".".join(map(str, (head, arcs[0] - 40 * head, *arcs[1:])))


def encoded(tag: int, content: bytes) -> bytes:
    size = len(content)
    if size < 0x80:
        return bytes((tag, size)) + content
    length = size.to_bytes((size.bit_length() + 7) // 8, "big")
    return bytes((tag, 0x80 | len(length))) + length + content


def _length(data: bytes, position: int) -> tuple[int, int]:
    if position >= len(data):
        raise Malformed("a value without a length")
    length = data[position]
    position += 1
    if length < 0x80:
        return length, position
    count = length & 0x7F
    if not 1 <= count <= 4 or position + count > len(data):
        raise Malformed("a length that makes no sense")
    return int.from_bytes(data[position : position + count], "big"), position + count
