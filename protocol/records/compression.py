"""Kafka's compression codecs on whole buffers.

The framing is what the Java client writes: gzip members, snappy in xerial's blocks, LZ4 and zstd frames.
Reading takes what other clients write as well: raw snappy, concatenated gzip members and zstd frames.
Decompression never produces more than `limit` bytes, whatever the data claims.

The libraries are loaded on first use: most brokers never decompress a batch.
"""

from __future__ import annotations

import struct
import zlib
from typing import TYPE_CHECKING, Any, Final

from kbroker.protocol.records.errors import CorruptRecord, DecompressedTooLarge, UnsupportedCompression

if TYPE_CHECKING:
    from typing_extensions import Buffer

NONE: Final = 0
GZIP: Final = 1
SNAPPY: Final = 2
LZ4: Final = 3
ZSTD: Final = 4

CODEC_NAMES: Final = ("none", "gzip", "snappy", "lz4", "zstd")
DEFAULT_LEVELS: Final = {GZIP: -1, LZ4: 9, ZSTD: 3}
LEVEL_RANGES: Final = {GZIP: (1, 9), LZ4: (1, 17), ZSTD: (-131072, 22)}

_XERIAL_MAGIC: Final = b"\x82SNAPPY\x00"
_XERIAL_HEADER: Final = _XERIAL_MAGIC + struct.pack(">ii", 1, 1)  # version, lowest compatible version
_XERIAL_BLOCK_BYTES: Final = 32 * 1024
_SNAPPY_MAX_RATIO: Final = 22  # the longest copy element makes 64 bytes from 3
_INT32 = struct.Struct(">i")

_ZSTD_MAGIC: Final = b"\x28\xb5\x2f\xfd"
_ZSTD_BLOCK_BYTES: Final = 128 * 1024

_LZ4_MAGIC: Final = b"\x04\x22\x4d\x18"


def compress(codec: int, data: Buffer, level: int | None = None) -> bytes:
    """Compress one payload. `level` None is Kafka's default; snappy has no levels."""
    if codec == NONE:
        return bytes(data)
    if codec == SNAPPY:
        return _compress_snappy(data)
    level = _checked_level(codec, level)
    if codec == GZIP:
        compressor = zlib.compressobj(level, zlib.DEFLATED, 31)
        return compressor.compress(data) + compressor.flush()
    if codec == LZ4:
        return _compress_lz4(data, level)
    import cramjam

    return bytes(cramjam.zstd.compress(data, level))


def decompress(codec: int, data: Buffer, limit: int) -> bytes:
    """Decompress one payload of at most `limit` bytes, or raise CorruptRecord or DecompressedTooLarge."""
    if codec == NONE:
        if memoryview(data).nbytes > limit:
            raise DecompressedTooLarge(f"the data has more than {limit} bytes")
        return bytes(data)
    if codec == GZIP:
        return _decompress_gzip(data, limit)
    if codec == SNAPPY:
        return _decompress_snappy(memoryview(data), limit)
    if codec == LZ4:
        return _decompress_lz4(data, limit)
    if codec == ZSTD:
        return _decompress_zstd(memoryview(data), limit)
    raise UnsupportedCompression(f"there is no compression codec {codec}")


def _checked_level(codec: int, level: int | None) -> int:
    if codec not in DEFAULT_LEVELS:
        raise UnsupportedCompression(f"there is no compression codec {codec}")
    default = DEFAULT_LEVELS[codec]
    if level is None or level == default:
        return default
    low, high = LEVEL_RANGES[codec]
    if not low <= level <= high:
        raise ValueError(f"{CODEC_NAMES[codec]} has levels {low} to {high}, not {level}")
    return level


def _too_large(limit: int) -> DecompressedTooLarge:
    return DecompressedTooLarge(f"the decompressed data has more than {limit} bytes")


def _decompress_gzip(data: Buffer, limit: int) -> bytes:
    parts: list[bytes] = []
    room = limit
    rest: Any = data
    try:
        while True:
            member = zlib.decompressobj(31)
            part = member.decompress(rest, room + 1)
            parts.append(part)
            room -= len(part)
            if room < 0:
                raise _too_large(limit)
            if not member.eof:
                raise CorruptRecord("the gzip data ends early")
            rest = member.unused_data
            if not rest.startswith(b"\x1f\x8b"):  # Java, too, ignores what follows the last member
                return b"".join(parts)
    except zlib.error as error:
        raise CorruptRecord(f"not gzip data: {error}") from None


def _compress_snappy(data: Buffer) -> bytes:
    import cramjam

    compress_raw = cramjam.snappy.compress_raw
    view = memoryview(data)
    parts: list[Buffer] = [_XERIAL_HEADER]
    for start in range(0, len(view), _XERIAL_BLOCK_BYTES):
        block = compress_raw(view[start : start + _XERIAL_BLOCK_BYTES])
        parts += (_INT32.pack(len(block)), block)
    return b"".join(parts)


def _decompress_snappy(data: memoryview, limit: int) -> bytes:
    if bytes(data[:8]) != _XERIAL_MAGIC:
        return _decompress_snappy_block(data, limit)
    parts: list[bytes] = []
    pos, end, room = len(_XERIAL_HEADER), len(data), limit
    while pos < end:
        if bytes(data[pos : pos + 8]) == _XERIAL_MAGIC:  # streams may be concatenated
            pos += len(_XERIAL_HEADER)
            continue
        if end - pos < 4:
            raise CorruptRecord("the snappy data ends early")
        (size,) = _INT32.unpack_from(data, pos)
        pos += 4
        if not 0 <= size <= end - pos:
            raise CorruptRecord(f"a snappy block of {size} bytes where {end - pos} remain")
        part = _decompress_snappy_block(data[pos : pos + size], room)
        parts.append(part)
        room -= len(part)
        pos += size
    return b"".join(parts)


def _decompress_snappy_block(block: memoryview, limit: int) -> bytes:
    import cramjam

    try:
        size = cramjam.snappy.decompress_raw_len(block)
        if size > limit:
            raise _too_large(limit)
        if size > len(block) * _SNAPPY_MAX_RATIO:
            raise CorruptRecord(f"snappy cannot make {size} bytes from {len(block)}")
        return bytes(cramjam.snappy.decompress_raw(block))
    except cramjam.DecompressionError as error:
        raise CorruptRecord(f"not snappy data: {error}") from None


def _lz4_frame() -> Any:
    import lz4.frame

    return lz4.frame


def _compress_lz4(data: Buffer, level: int) -> bytes:
    lz4_frame = _lz4_frame()

    # Java gives its default level to the fast compressor and any other to the thorough one, whose
    # levels start at 3 here. It demands independent blocks.
    level = 0 if level == DEFAULT_LEVELS[LZ4] else max(level, 3)
    return bytes(
        lz4_frame.compress(
            data,
            compression_level=level,
            block_size=lz4_frame.BLOCKSIZE_MAX64KB,
            block_linked=False,
            store_size=False,
        )
    )


def _decompress_lz4(data: Buffer, limit: int) -> bytes:
    frame = _lz4_frame().LZ4FrameDecompressor()
    try:
        result: bytes = frame.decompress(data, limit + 1)
    except RuntimeError as error:
        raise CorruptRecord(f"not LZ4 data: {error}") from None
    if len(result) > limit:
        raise _too_large(limit)
    if not frame.eof:
        raise CorruptRecord("the LZ4 data ends early")
    return result


def _decompress_zstd(data: memoryview, limit: int) -> bytes:
    import cramjam

    try:
        if _zstd_bound(data) <= limit:
            return bytes(cramjam.zstd.decompress(data))
        output = bytearray(limit)
        size = cramjam.zstd.decompress_into(data, output)
        return bytes(memoryview(output)[:size])
    except cramjam.DecompressionError as error:
        if "write whole buffer" in str(error):
            raise _too_large(limit) from None
        raise CorruptRecord(f"not zstd data: {error}") from None


def _zstd_bound(data: memoryview) -> int:
    """The most that zstd frames can hold, from their block headers alone."""
    pos, end, bound = 0, len(data), 0
    while pos + 5 <= end:
        magic = bytes(data[pos : pos + 4])
        if magic != _ZSTD_MAGIC:
            if data[pos] & 0xF0 == 0x50 and magic[1:] == b"\x2a\x4d\x18":  # a skippable frame
                pos += 8 + int.from_bytes(data[pos + 4 : pos + 8], "little")
                continue
            break
        descriptor = data[pos + 4]
        single_segment = descriptor >> 5 & 1
        pos += 5 + (not single_segment) + (0, 1, 2, 4)[descriptor & 3]
        pos += (single_segment, 2, 4, 8)[descriptor >> 6]
        last = 0
        while not last and pos + 3 <= end:
            header = int.from_bytes(data[pos : pos + 3], "little")
            last, kind, size = header & 1, header >> 1 & 3, header >> 3
            if kind == 1:  # run length: one byte, repeated
                bound += size
                pos += 4
            else:
                bound += size if kind == 0 else _ZSTD_BLOCK_BYTES
                pos += 3 + size
        pos += 4 * (descriptor >> 2 & 1)
    return bound
