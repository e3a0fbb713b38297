"""LZ4 frames inside messages of format 0.

Kafka's first LZ4 writer took the checksum of the frame header over the frame's magic as well (KAFKA-3160),
and old clients expect it so. Kafka ignores it when it reads message format 0; format 1 and later have correct
frames. Here a frame gets the other checksum on its way in and out of the LZ4 library.

    0  magic         4 bytes
    4  FLG           1 byte    bit 3: content size follows, bit 0: dictionary id follows
    5  BD            1 byte
    6  content size  0 or 8, dictionary id 0 or 4
       checksum      1 byte    second byte of XXH32 of FLG up to here
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from kbroker.protocol.records.compression import LZ4, compress, decompress
from kbroker.protocol.records.errors import CorruptRecord

if TYPE_CHECKING:
    from typing_extensions import Buffer

_DESCRIPTOR: Final = 4
_MASK: Final = 0xFFFFFFFF
_PRIME1: Final = 2654435761
_PRIME2: Final = 2246822519
_PRIME3: Final = 3266489917
_PRIME4: Final = 668265263
_PRIME5: Final = 374761393


def compress_legacy_lz4(data: Buffer) -> bytes:
    frame = bytearray(compress(LZ4, data))
    end = _checksum_position(frame)
    frame[end] = _header_checksum(bytes(frame[:end]))
    return bytes(frame)


def decompress_legacy_lz4(data: Buffer, limit: int) -> bytes:
    frame = bytearray(data)
    end = _checksum_position(frame)
    frame[end] = _header_checksum(bytes(frame[_DESCRIPTOR:end]))
    return decompress(LZ4, frame, limit)


def _checksum_position(frame: bytearray) -> int:
    if len(frame) > _DESCRIPTOR:
        flags = frame[_DESCRIPTOR]
        position = _DESCRIPTOR + 2 + (8 if flags & 0x08 else 0) + (4 if flags & 0x01 else 0)
        if position < len(frame):
            return position
    raise CorruptRecord("the LZ4 data ends early")


def _header_checksum(header: bytes) -> int:
    return _xxh32(header) >> 8 & 0xFF


def _rotate(value: int, bits: int) -> int:
    return (value << bits | value >> 32 - bits) & _MASK


def _xxh32(data: bytes) -> int:
    """XXH32 with seed 0 of fewer than 16 bytes, which is what a frame header has."""
    h = _PRIME5 + len(data)
    words = len(data) // 4 * 4
    for start in range(0, words, 4):
        word = int.from_bytes(data[start : start + 4], "little")
        h = _rotate(h + word * _PRIME3 & _MASK, 17) * _PRIME4 & _MASK
    for byte in data[words:]:
        h = _rotate(h + byte * _PRIME5 & _MASK, 11) * _PRIME1 & _MASK
    h = (h ^ h >> 15) * _PRIME2 & _MASK
    h = (h ^ h >> 13) * _PRIME3 & _MASK
    return h ^ h >> 16
