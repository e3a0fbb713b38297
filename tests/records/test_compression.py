"""Every codec: framings of others, levels, limits, and data that is none."""

from __future__ import annotations

import gzip
import struct

import cramjam
import lz4.frame
import pytest
import zstandard
from aiokafka import codec as aiokafka_codec
from hypothesis import given
from hypothesis import strategies as st

from kbroker.protocol.records.compression import (
    CODEC_NAMES,
    DEFAULT_LEVELS,
    GZIP,
    LEVEL_RANGES,
    LZ4,
    NONE,
    SNAPPY,
    ZSTD,
    compress,
    decompress,
)
from kbroker.protocol.records.errors import (
    CorruptRecord,
    DecompressedTooLarge,
    RecordError,
    UnsupportedCompression,
)
from kbroker.protocol.records.legacy_lz4 import compress_legacy_lz4, decompress_legacy_lz4
from tests.records.record_strategies import CODECS

COMPRESSING = (GZIP, SNAPPY, LZ4, ZSTD)
DATA = b"".join(b"%d: the quick brown fox\n" % n for n in range(20_000))
by_codec = pytest.mark.parametrize("codec", COMPRESSING, ids=CODEC_NAMES[1:])


@given(st.sampled_from(CODECS), st.binary(max_size=2000), st.sampled_from([1, 1000]))
def test_what_is_compressed_comes_back(codec: int, data: bytes, times: int) -> None:
    data *= times
    packed = compress(codec, data)
    assert decompress(codec, packed, len(data)) == data
    assert decompress(codec, memoryview(bytearray(packed)), len(data)) == data
    assert compress(codec, memoryview(data)) == packed


@by_codec
@pytest.mark.parametrize("size", [0, 1, len(DATA) - 1])
def test_one_byte_more_than_the_limit_is_too_large(codec: int, size: int) -> None:
    packed = compress(codec, DATA[: size + 1])
    assert len(decompress(codec, packed, size + 1)) == size + 1
    with pytest.raises(DecompressedTooLarge):
        decompress(codec, packed, size)


def test_uncompressed_data_is_bounded_too() -> None:
    assert decompress(NONE, b"12345", 5) == b"12345"
    with pytest.raises(DecompressedTooLarge):
        decompress(NONE, b"12345", 4)


@by_codec
@pytest.mark.parametrize("data", [b"garbage" * 9, bytes(64), b"\xff" * 64])
def test_what_is_not_compressed_is_corrupt(codec: int, data: bytes) -> None:
    with pytest.raises((CorruptRecord, DecompressedTooLarge)):
        decompress(codec, data, 1 << 16)


@pytest.mark.parametrize("codec", [GZIP, LZ4], ids=["gzip", "lz4"])
def test_no_data_is_corrupt_to_codecs_with_a_frame(codec: int) -> None:
    with pytest.raises(CorruptRecord):
        decompress(codec, b"", 1 << 16)


@by_codec
def test_truncated_data_is_corrupt(codec: int) -> None:
    packed = compress(codec, DATA)
    for size in (1, 5, 20, len(packed) // 2, len(packed) - 1):
        with pytest.raises(CorruptRecord):
            decompress(codec, packed[:size], 1 << 24)


@given(st.sampled_from(COMPRESSING), st.data())
def test_damaged_data_raises_record_errors_only(codec: int, data: st.DataObject) -> None:
    packed = bytearray(compress(codec, DATA[:3000]))
    for _ in range(data.draw(st.integers(1, 3))):
        packed[data.draw(st.integers(0, len(packed) - 1))] = data.draw(st.integers(0, 255))
    try:
        assert len(decompress(codec, packed, 10_000)) <= 10_000
    except RecordError:
        return


@pytest.mark.parametrize("codec", [5, 7, -1, 99])
def test_an_unknown_codec_is_unsupported(codec: int) -> None:
    with pytest.raises(UnsupportedCompression):
        compress(codec, b"")
    with pytest.raises(UnsupportedCompression):
        decompress(codec, b"", 10)


@pytest.mark.parametrize(
    ("codec", "level"),
    [(codec, level) for codec in LEVEL_RANGES for level in {*LEVEL_RANGES[codec], DEFAULT_LEVELS[codec], 5}],
)
def test_all_of_kafkas_levels_compress(codec: int, level: int) -> None:
    packed = compress(codec, DATA, level)
    assert decompress(codec, packed, len(DATA)) == DATA
    if level == max(LEVEL_RANGES[codec]):
        assert len(packed) < len(compress(codec, DATA, min(LEVEL_RANGES[codec])))


@pytest.mark.parametrize(("codec", "level"), [(GZIP, 0), (GZIP, 10), (LZ4, 0), (LZ4, 18), (ZSTD, 23)])
def test_other_levels_are_refused(codec: int, level: int) -> None:
    with pytest.raises(ValueError, match="levels"):
        compress(codec, b"", level)


def test_gzip_members_may_follow_each_other() -> None:
    packed = gzip.compress(b"one ") + gzip.compress(b"two")
    assert decompress(GZIP, packed, 7) == b"one two"
    with pytest.raises(DecompressedTooLarge):
        decompress(GZIP, packed, 6)
    assert decompress(GZIP, packed + b"\0\0padding", 7) == b"one two"


def test_snappy_is_read_raw_and_in_xerial_blocks() -> None:
    assert decompress(SNAPPY, bytes(cramjam.snappy.compress_raw(DATA)), len(DATA)) == DATA
    for block_bytes in (1000, 32 * 1024):
        framed = aiokafka_codec.snappy_encode(DATA, xerial_compatible=True, xerial_blocksize=block_bytes)
        assert decompress(SNAPPY, framed, len(DATA)) == DATA
    assert decompress(SNAPPY, compress(SNAPPY, b"one ") + compress(SNAPPY, b"two"), 7) == b"one two"


def test_snappy_is_written_in_xerial_blocks() -> None:
    assert compress(SNAPPY, DATA).startswith(b"\x82SNAPPY\0\0\0\0\1\0\0\0\1")
    assert aiokafka_codec.snappy_decode(compress(SNAPPY, DATA)) == DATA


def test_a_snappy_block_that_claims_the_impossible_is_refused_before_it_is_allocated() -> None:
    with pytest.raises(CorruptRecord):
        decompress(SNAPPY, b"\xff\xff\xff\x7f" + b"\0" * 100, 1 << 30)
    with pytest.raises(DecompressedTooLarge):
        decompress(SNAPPY, b"\xff\xff\xff\xff\x0f" + b"\0" * 100, 1 << 20)


@pytest.mark.parametrize("size", [-1, 1 << 30])
def test_a_xerial_block_beyond_the_data_is_corrupt(size: int) -> None:
    header = compress(SNAPPY, b"")
    with pytest.raises(CorruptRecord):
        decompress(SNAPPY, header + struct.pack(">i", size) + b"1234", 100)
    with pytest.raises(CorruptRecord):
        decompress(SNAPPY, header + b"123", 100)


def test_lz4_frames_have_the_header_that_java_writes() -> None:
    frame = compress(LZ4, DATA)
    # Version 1, independent blocks, no checksums, no content size; blocks of at most 64 KiB.
    assert frame[4:6] == b"\x60\x40"
    assert lz4.frame.decompress(frame) == DATA


def test_lz4_frames_of_every_shape_are_read() -> None:
    for options in (
        {"block_linked": True},
        {"content_checksum": True, "block_checksum": True},
        {"store_size": True, "block_size": lz4.frame.BLOCKSIZE_MAX4MB},
    ):
        assert decompress(LZ4, lz4.frame.compress(DATA, **options), len(DATA)) == DATA


def test_the_first_lz4_frames_of_kafka_are_written_and_read() -> None:
    old = compress_legacy_lz4(DATA)
    assert old != compress(LZ4, DATA)
    # The header checksum as kafka-python's tests and old brokers have it for FLG 0x60, BD 0x40.
    assert (compress(LZ4, DATA)[6], old[6]) == (0x82, 0x1A)
    assert decompress_legacy_lz4(old, len(DATA)) == DATA
    assert decompress_legacy_lz4(compress(LZ4, DATA), len(DATA)) == DATA
    with pytest.raises(CorruptRecord):
        decompress(LZ4, old, len(DATA))
    sized = lz4.frame.compress(DATA, store_size=True)
    assert decompress_legacy_lz4(sized[:14] + b"\0" + sized[15:], len(DATA)) == DATA


@pytest.mark.parametrize("size", [0, 4, 5, 6, 7, 20])
def test_a_truncated_old_lz4_frame_is_corrupt(size: int) -> None:
    with pytest.raises(CorruptRecord):
        decompress_legacy_lz4(compress_legacy_lz4(DATA)[:size], len(DATA))


@pytest.mark.parametrize(
    "options",
    [
        {"write_content_size": True},
        {"write_content_size": False},
        {"write_checksum": True, "write_content_size": False},
    ],
)
@pytest.mark.parametrize("size", [0, 10, 300, 70_000, len(DATA)])
def test_zstd_frames_of_every_shape_are_read_and_bounded(options: dict[str, bool], size: int) -> None:
    frame = zstandard.ZstdCompressor(**options).compress(DATA[:size])
    assert decompress(ZSTD, frame, size) == DATA[:size]
    stream = zstandard.ZstdCompressor(**options).compressobj()
    flushed = (
        b"".join(
            stream.compress(DATA[n : min(n + 5000, size)]) + stream.flush(zstandard.COMPRESSOBJ_FLUSH_BLOCK)
            for n in range(0, size, 5000)
        )
        + stream.flush()
    )
    assert decompress(ZSTD, flushed, size) == DATA[:size]
    if size:
        for packed in (frame, flushed):
            with pytest.raises(DecompressedTooLarge):
                decompress(ZSTD, packed, size - 1)


def test_zstd_frames_may_follow_each_other_and_be_skippable() -> None:
    one, two = compress(ZSTD, b"one "), compress(ZSTD, b"two")
    skipped = b"\x50\x2a\x4d\x18" + struct.pack("<I", 3) + b"abc"
    assert decompress(ZSTD, one + two, 7) == b"one two"
    assert decompress(ZSTD, one + skipped + two, 7) == b"one two"


@by_codec
def test_a_bomb_stays_within_its_limit(codec: int) -> None:
    bomb = compress(codec, bytes(64 << 20))
    with pytest.raises(DecompressedTooLarge):
        decompress(codec, bomb, 1 << 20)
