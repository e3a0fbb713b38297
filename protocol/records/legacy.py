"""Message sets of the formats before record batches (magic 0 and 1), and their conversion from and to these.

A message set is messages, one after the other, big endian; its last message may be cut off:

     0  offset        int64
     8  size          int32     bytes that follow
    12  crc           uint32    CRC32 of everything from the magic on
    16  magic         int8      0 or 1
    17  attributes    int8      bits 0-2 codec, 3 log append time (magic 1)
    18  timestamp     int64     magic 1 only
        key length    int32     -1: no key
        key           bytes
        value length  int32     -1: no value
        value         bytes

A message with a codec is a wrapper: its value is a compressed message set of uncompressed messages. A
wrapper's offset is that of its last inner message; inner offsets are absolute in magic 0 and relative to the
first in magic 1. A wrapper's log append time holds for all its messages.

Logs hold record batches only: a message set is converted up before it is appended (Produce 0 to 2), and
batches are converted down for Fetch 0 to 3, where headers and control records are left out.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from kbroker.protocol.records import (
    MAX_DECOMPRESSED_BYTES,
    build_batch,
    compression,
    iter_batches,
    iter_records,
)
from kbroker.protocol.records.batch import (
    CODEC_MASK,
    LOG_APPEND_TIME_BIT,
    LOG_OVERHEAD,
    MAGIC,
    MAGIC_POSITION,
)
from kbroker.protocol.records.codec import NO_TIMESTAMP, Record
from kbroker.protocol.records.errors import CorruptRecord, InvalidRecord, UnsupportedCompression

if TYPE_CHECKING:
    from typing_extensions import Buffer

_HEADER: Final = struct.Struct(">qiIbb")
_TIMESTAMP: Final = struct.Struct(">q")
_LENGTH: Final = struct.Struct(">i")
_CRC: Final = struct.Struct(">I")
_CRC_POSITION: Final = 12
_LEAST_SIZES: Final = (14, 22)  # by magic: a message without key and value


class Message(NamedTuple):
    """One message as it stands in its set, a wrapper not opened."""

    offset: int
    magic: int
    attributes: int
    timestamp: int
    key: bytes | None
    value: bytes | None

    @property
    def codec(self) -> int:
        return self.attributes & CODEC_MASK

    @property
    def has_log_append_time(self) -> bool:
        return self.magic > 0 and self.attributes & LOG_APPEND_TIME_BIT != 0


def iter_messages(buf: Buffer) -> Iterator[Message]:
    """Yield the messages of a set, checked, wrappers unopened; a message that is cut off ends it."""
    view = memoryview(buf)
    pos, total = 0, len(view)
    while total - pos >= LOG_OVERHEAD:
        (size,) = _LENGTH.unpack_from(view, pos + 8)
        if size < _LEAST_SIZES[0]:
            raise CorruptRecord(f"a message of {size} bytes")
        end = pos + LOG_OVERHEAD + size
        if end > total:
            return
        yield _read_message(view[pos:end])
        pos = end


def _read_message(view: memoryview) -> Message:
    offset, size, crc, magic, attributes = _HEADER.unpack_from(view)
    if magic not in (0, 1):
        raise (InvalidRecord if magic == MAGIC else CorruptRecord)(f"a message of magic {magic}")
    if size < _LEAST_SIZES[magic]:
        raise CorruptRecord(f"a message of {size} bytes")
    if zlib.crc32(view[MAGIC_POSITION:]) != crc:
        raise CorruptRecord("the message does not have the checksum that it carries")
    pos = _HEADER.size
    timestamp = NO_TIMESTAMP
    if magic:
        (timestamp,) = _TIMESTAMP.unpack_from(view, pos)
        pos += 8
    key, pos = _read_bytes(view, pos)
    value, pos = _read_bytes(view, pos)
    if pos != len(view):
        raise CorruptRecord(f"{len(view) - pos} bytes follow the value of a message")
    return Message(offset, magic, attributes, timestamp, key, value)


def _read_bytes(view: memoryview, pos: int) -> tuple[bytes | None, int]:
    if len(view) - pos < 4:
        raise CorruptRecord("a message ends within its parts")
    (size,) = _LENGTH.unpack_from(view, pos)
    pos += 4
    if size < 0:
        return None, pos
    if size > len(view) - pos:
        raise CorruptRecord(f"a key or value of {size} bytes where {len(view) - pos} remain")
    return bytes(view[pos : pos + size]), pos + size


def iter_message_set(buf: Buffer, *, limit: int = MAX_DECOMPRESSED_BYTES) -> Iterator[Record]:
    """Yield the records of a message set, those inside wrappers included."""
    for message in iter_messages(buf):
        yield from _records_of(message, limit)


def _records_of(message: Message, limit: int) -> Iterator[Record]:
    if message.codec:
        return _open_wrapper(message, limit)
    return iter((Record(message.timestamp, message.key, message.value, (), message.offset),))


def _open_wrapper(wrapper: Message, limit: int) -> Iterator[Record]:
    if wrapper.codec == compression.ZSTD:
        raise InvalidRecord(f"messages of magic {wrapper.magic} are not compressed by zstd")
    if wrapper.value is None:
        raise InvalidRecord("a compressed message without a value")
    if wrapper.codec == compression.LZ4 and wrapper.magic == 0:
        from kbroker.protocol.records.legacy_lz4 import decompress_legacy_lz4

        data = decompress_legacy_lz4(wrapper.value, limit)
    else:
        data = compression.decompress(wrapper.codec, wrapper.value, limit)
    messages = list(iter_messages(data))
    if not messages:
        raise InvalidRecord("a compressed message with nothing inside")

    base_offset = 0
    if wrapper.magic and wrapper.offset:  # 0 comes from librdkafka versions that leave it to the broker
        base_offset = wrapper.offset - messages[-1].offset
        if base_offset < 0:
            raise InvalidRecord(f"offset {wrapper.offset} around inner offset {messages[-1].offset}")
    for index, message in enumerate(messages):
        if message.magic != wrapper.magic:
            raise InvalidRecord(f"magic {message.magic} inside a message of magic {wrapper.magic}", index)
        if message.codec:
            raise InvalidRecord("a compressed message inside a compressed message", index)
        timestamp = wrapper.timestamp if wrapper.has_log_append_time else message.timestamp
        yield Record(timestamp, message.key, message.value, (), base_offset + message.offset)


def up_convert(message_set: Buffer, *, limit: int = MAX_DECOMPRESSED_BYTES) -> bytes:
    """One record batch, at offset 0 and with the same codec, of a producer's message set.

    Empty when the set has no whole message. As in Kafka, a set has one format, and a wrapper is alone in it.
    """
    messages = list(iter_messages(message_set))
    if not messages:
        return b""
    first = messages[0]
    for message in messages:
        if message.magic != first.magic:
            raise InvalidRecord(f"magic {message.magic} after a message of magic {first.magic}")
        if message.codec and len(messages) > 1:
            raise InvalidRecord("a compressed message is not alone in its message set")
    return build_batch(
        [record for message in messages for record in _records_of(message, limit)], codec=first.codec
    )


def down_convert(
    batches: Buffer, magic: int, first_offset: int = 0, *, limit: int = MAX_DECOMPRESSED_BYTES
) -> bytes:
    """The message set of format `magic` with the records of the batches, control records left out.

    Uncompressed records below `first_offset`, which a client did not ask for, are left out: some clients
    rely on it, since the messages they know stand alone. Compressed ones come as a whole, as they ever did.
    """
    view = memoryview(batches)
    parts: list[bytes] = []
    for pos, header in iter_batches(view):
        if header.is_control:
            continue
        codec = header.codec
        if codec == compression.ZSTD:
            raise UnsupportedCompression("message formats 0 and 1 have no zstd")
        records = list(iter_records(view[pos : pos + header.size_bytes], limit=limit))
        if not codec:
            records = [record for record in records if record.offset >= first_offset]
        if records:
            parts.append(
                build_message_set(
                    records,
                    magic,
                    codec=codec,
                    log_append_time=bool(header.attributes & LOG_APPEND_TIME_BIT),
                )
            )
    return b"".join(parts)


def build_message_set(
    records: Sequence[Record], magic: int, *, codec: int = compression.NONE, log_append_time: bool = False
) -> bytes:
    """The messages of the records at their offsets, inside one wrapper if there is a codec."""
    attributes = LOG_APPEND_TIME_BIT if log_append_time and magic else 0
    base_offset = records[0].offset if codec and magic else 0
    message_set = b"".join(
        [
            _build_message(
                record.offset - base_offset, magic, attributes, record.timestamp, record.key, record.value
            )
            for record in records
        ]
    )
    if not codec:
        return message_set
    if codec == compression.LZ4 and magic == 0:
        from kbroker.protocol.records.legacy_lz4 import compress_legacy_lz4

        value = compress_legacy_lz4(message_set)
    else:
        value = compression.compress(codec, message_set)
    timestamp = max(record.timestamp for record in records)
    return _build_message(records[-1].offset, magic, attributes | codec, timestamp, None, value)


def _build_message(
    offset: int, magic: int, attributes: int, timestamp: int, key: bytes | None, value: bytes | None
) -> bytes:
    size = _LEAST_SIZES[magic] + len(key or b"") + len(value or b"")
    try:
        parts = [
            _HEADER.pack(offset, size, 0, magic, attributes),
            _TIMESTAMP.pack(timestamp) if magic else b"",
            _LENGTH.pack(-1 if key is None else len(key)),
            key or b"",
            _LENGTH.pack(-1 if value is None else len(value)),
            value or b"",
        ]
    except struct.error:
        raise InvalidRecord(f"offset {offset} or timestamp {timestamp} is no int64") from None
    message = bytearray(b"".join(parts))
    _CRC.pack_into(message, _CRC_POSITION, zlib.crc32(memoryview(message)[MAGIC_POSITION:]))
    return bytes(message)
