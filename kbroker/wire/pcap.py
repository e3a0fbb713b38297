"""The packets of a capture file: pcap, of either byte order and unit of time, or pcapng; also gzipped.

pcap: a header of 24 bytes (magic, version, …, link type), then packets: seconds, fraction, captured and
original length, bytes. pcapng: blocks of type, length, body, length; sections say the byte order, interfaces
the link type and the unit of time.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import IO, Final, NamedTuple, Protocol

_GZIP: Final = b"\x1f\x8b"
_PCAP: Final = {
    b"\xd4\xc3\xb2\xa1": ("<", 1e-6),
    b"\xa1\xb2\xc3\xd4": (">", 1e-6),
    b"\x4d\x3c\xb2\xa1": ("<", 1e-9),
    b"\xa1\xb2\x3c\x4d": (">", 1e-9),
}
_SECTION: Final = b"\x0a\x0d\x0d\x0a"
_ORDERS: Final = {b"\x4d\x3c\x2b\x1a": "<", b"\x1a\x2b\x3c\x4d": ">"}
_INTERFACE, _SIMPLE, _ENHANCED = 1, 3, 6
_TIME_UNIT: Final = 9  # the option of an interface
_LARGEST_PACKET: Final = 16 << 20
_CHUNK_BYTES: Final = 64 << 10


class Source(Protocol):
    def read(self, size: int, /) -> bytes: ...


class NoCapture(ValueError):
    """A file that is no capture, or is damaged."""


class Packet(NamedTuple):
    time: float  # seconds since 1970
    link_type: int
    data: bytes


def packets(file: IO[bytes]) -> Iterator[Packet]:
    """Each packet; one that is cut off at the end, as of a capture that was killed, ends it."""
    start = _take(file, 4)
    if start[:2] == _GZIP:
        import zlib

        try:
            yield from _packets(_Unzipped(start, file))
        except zlib.error as error:
            raise NoCapture(f"its compression is damaged: {error}") from error
    else:
        yield from _packets(file, start)


def _packets(file: Source, start: bytes = b"") -> Iterator[Packet]:
    start = start or _take(file, 4)
    if start in _PCAP:
        yield from _pcap(file, *_PCAP[start])
    elif start == _SECTION:
        yield from _pcapng(file)
    else:
        raise NoCapture("this is neither pcap nor pcapng")


class _Unzipped:
    """A gzipped file as it was; one that is cut off ends where it is."""

    def __init__(self, start: bytes, file: IO[bytes]) -> None:
        import zlib

        self._file = file
        self._zipped = start
        self._unzip = zlib.decompressobj(31)

    def read(self, size: int) -> bytes:
        while True:
            zipped = self._zipped or self._file.read(_CHUNK_BYTES)
            if not zipped:
                return b""
            data = self._unzip.decompress(zipped, size)
            self._zipped = self._unzip.unconsumed_tail
            if data or self._unzip.eof:
                return data


def _take(file: Source, size: int) -> bytes:
    """As many bytes, or fewer at the end of the file."""
    data = b""
    while len(data) < size:
        part = file.read(size - len(data))
        if not part:
            break
        data += part
    return data


def _pcap(file: Source, order: str, unit: float) -> Iterator[Packet]:
    header = _take(file, 20)
    if len(header) < 20:
        return
    link_type = struct.unpack(order + "I", header[16:])[0] & 0xFFFF  # above are bits about checksums
    record = struct.Struct(order + "IIII")
    while len(start := _take(file, record.size)) == record.size:
        seconds, fraction, captured, _original = record.unpack(start)
        if captured > _LARGEST_PACKET:
            raise NoCapture(f"a packet of {captured} bytes: the file is damaged")
        data = _take(file, captured)
        if len(data) < captured:
            return
        yield Packet(seconds + fraction * unit, link_type, data)


def _pcapng(file: Source) -> Iterator[Packet]:
    order = "<"
    interfaces: list[tuple[int, float]] = []
    kind = _SECTION
    while len(kind) == 4:
        if kind == _SECTION:
            start = _take(file, 8)
            if len(start) < 8:
                return
            order = _ORDERS.get(start[4:], "")
            if not order:
                raise NoCapture("a section without a byte order: the file is damaged")
            interfaces = []
            body = _body(file, order, start[:4], 4)
        else:
            body = _body(file, order, _take(file, 4), 0)
        if body is None:
            return
        number = int.from_bytes(kind, "little" if order == "<" else "big")
        try:
            if number == _INTERFACE:
                interfaces.append(_interface(order, body))
            elif number == _ENHANCED:
                yield _enhanced(order, body, interfaces)
            elif number == _SIMPLE and interfaces:
                yield Packet(0.0, interfaces[0][0], body[4:])
        except (struct.error, IndexError) as error:
            raise NoCapture("a block that is too short, or of no interface: the file is damaged") from error
        kind = _take(file, 4)


def _body(file: Source, order: str, length: bytes, read: int) -> bytes | None:
    """The body of a block, of which `read` bytes have been read; None at the end of the file."""
    if len(length) < 4:
        return None
    (size,) = struct.unpack(order + "I", length)
    if not 12 + read <= size <= _LARGEST_PACKET:
        raise NoCapture(f"a block of {size} bytes: the file is damaged")
    body = _take(file, size - 12 - read)
    return body if len(body) == size - 12 - read and len(_take(file, 4)) == 4 else None


def _interface(order: str, body: bytes) -> tuple[int, float]:
    """Its link type and unit of time."""
    (link_type,) = struct.unpack_from(order + "H", body)
    position, unit = 8, 1e-6
    while position + 4 <= len(body):
        code, size = struct.unpack_from(order + "HH", body, position)
        if code == _TIME_UNIT and size:
            exponent = body[position + 4]
            unit = 2.0 ** -(exponent & 0x7F) if exponent & 0x80 else 10.0**-exponent
        position += 4 + (size + 3 & ~3)
    return link_type, unit


def _enhanced(order: str, body: bytes, interfaces: list[tuple[int, float]]) -> Packet:
    interface, high, low, captured, _original = struct.unpack_from(order + "IIIII", body)
    link_type, unit = interfaces[interface]
    return Packet((high << 32 | low) * unit, link_type, body[20 : 20 + captured])
