"""Messages among the bytes of a call: each behind a flag and its length, maybe compressed with gzip.

What is compressed is bounded by what it makes, not by what it is.
"""

from __future__ import annotations

import struct
import zlib
from typing import Final, NamedTuple

from kbroker.grpc.statuses import GrpcError, Status

PREFIX: Final = struct.Struct(">BI")
GZIP, IDENTITY = "gzip", "identity"
ENCODINGS: Final = (IDENTITY, GZIP)
_GZIP_WINDOW: Final = 31  # of zlib: with gzip's head and end
_WORTH_IT_BYTES: Final = 512
_LEVEL: Final = 6


class Frame(NamedTuple):
    compressed: bool
    data: bytes


class Frames:
    """Bytes that come bit by bit, and the messages among them."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._received = bytearray()
        self._wanted = PREFIX.size

    @property
    def begun(self) -> bool:
        """Whether a message has begun and not ended."""
        return bool(self._received)

    def add(self, data: bytes) -> list[Frame]:
        """The messages that end with this. Raises GrpcError."""
        received = self._received
        received += data
        if len(received) < self._wanted:
            return []
        found: list[Frame] = []
        at = 0
        with memoryview(received) as view:
            while len(view) - at >= PREFIX.size:
                flag, length = PREFIX.unpack_from(view, at)
                if flag > 1:
                    raise GrpcError(Status.INTERNAL, f"A message begins with flag {flag}, which is none.")
                if length > self._max_bytes:
                    raise too_large(self._max_bytes)
                end = at + PREFIX.size + length
                if len(view) < end:
                    self._wanted = end - at
                    break
                found.append(Frame(flag == 1, bytes(view[at + PREFIX.size : end])))
                at = end
                self._wanted = PREFIX.size
        del received[:at]
        return found


def framed(data: bytes, *, compress: bool) -> bytes:
    if compress and len(data) >= _WORTH_IT_BYTES:
        data = zlib.compress(data, _LEVEL, _GZIP_WINDOW)
        return PREFIX.pack(1, len(data)) + data
    return PREFIX.pack(0, len(data)) + data


def decompressed(data: bytes, max_bytes: int) -> bytes:
    """Raises GrpcError."""
    try:
        unpacking = zlib.decompressobj(_GZIP_WINDOW)
        found = unpacking.decompress(data, max_bytes + 1)
    except zlib.error:
        raise GrpcError(Status.INTERNAL, "A message is not compressed with gzip as it says.") from None
    if len(found) > max_bytes:
        raise too_large(max_bytes)
    if not unpacking.eof or unpacking.unused_data:
        raise GrpcError(Status.INTERNAL, "A message is not compressed with gzip as it says.")
    return found


def too_large(max_bytes: int) -> GrpcError:
    return GrpcError(
        Status.RESOURCE_EXHAUSTED,
        f"A message may have {max_bytes} bytes at most (kbroker.grpc.max.message.bytes): send it in parts.",
    )
