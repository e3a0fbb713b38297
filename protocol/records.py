"""Record batches of format 2 (magic 2), on raw bytes and one batch at a time.

The batch, big endian; the records behind the header may be compressed (record_codec.py has their layout):

     0  base offset             int64     assigned by the broker
     8  batch length            int32     bytes that follow this field
    12  partition leader epoch  int32     assigned by the broker
    16  magic                   int8      2
    17  crc                     uint32    CRC32C of everything from the attributes on
    21  attributes              int16     bits 0-2 codec, 3 log append time, 4 transactional,
                                          5 control, 6 delete horizon
    23  last offset delta       int32     record count - 1, until compaction removes records
    27  base timestamp          int64     or the delete horizon, where that bit is set
    35  max timestamp           int64
    43  producer id             int64     -1: none
    51  producer epoch          int16
    53  base sequence           int32
    57  record count            int32
    61  records

Base offset and leader epoch lie before the checksum's range, so that the broker patches them in place.
Whatever the bytes, reading them raises RecordError or nothing: no index runs beyond the buffer.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from kbroker.protocol import compression
from kbroker.protocol.crc32c import crc32c
from kbroker.protocol.record_codec import (
    NO_TIMESTAMP,
    Headers,
    Record,
    RecordSpan,
    decode_records,
    encode_records,
    record_spans,
)
from kbroker.protocol.record_errors import (
    CorruptRecord,
    DecompressedTooLarge,
    InvalidRecord,
    RecordError,
    UnsupportedCompression,
)

if TYPE_CHECKING:
    from typing_extensions import Buffer

__all__ = [
    "BATCH_OVERHEAD",
    "CREATE_TIME",
    "LOG_APPEND_TIME",
    "LOG_OVERHEAD",
    "MAGIC",
    "MAX_DECOMPRESSED_BYTES",
    "NO_PRODUCER_EPOCH",
    "NO_PRODUCER_ID",
    "NO_SEQUENCE",
    "NO_TIMESTAMP",
    "BatchHeader",
    "CorruptRecord",
    "DecompressedTooLarge",
    "Headers",
    "InvalidRecord",
    "Record",
    "RecordError",
    "RecordSpan",
    "UnsupportedCompression",
    "assign_offsets",
    "batch_size_at",
    "build_batch",
    "check_crc",
    "increment_sequence",
    "iter_batches",
    "iter_records",
    "iter_spans",
    "payload_of",
    "read_header",
    "recompress",
    "replace_payload",
    "stamp_append_time",
    "validate_batch",
    "validate_records",
    "validate_stored_batch",
]

HEADER: Final = struct.Struct(">qiibIhiqqqhii")
LENGTH: Final = struct.Struct(">i")
LENGTH_POSITION: Final = 8
EPOCH: Final = struct.Struct(">i")
EPOCH_POSITION: Final = 12
MAGIC_POSITION: Final = 16
CRC: Final = struct.Struct(">I")
CRC_POSITION: Final = 17
ATTRIBUTES: Final = struct.Struct(">h")
ATTRIBUTES_POSITION: Final = 21
OFFSET: Final = struct.Struct(">q")
MAX_TIMESTAMP: Final = struct.Struct(">q")
MAX_TIMESTAMP_POSITION: Final = 35

LOG_OVERHEAD: Final = 12
BATCH_OVERHEAD: Final = HEADER.size
MAGIC: Final = 2

CODEC_MASK: Final = 0x07
LOG_APPEND_TIME_BIT: Final = 0x08
TRANSACTIONAL_BIT: Final = 0x10
CONTROL_BIT: Final = 0x20
DELETE_HORIZON_BIT: Final = 0x40

CREATE_TIME: Final = 0
LOG_APPEND_TIME: Final = 1
NO_PRODUCER_ID: Final = -1
NO_PRODUCER_EPOCH: Final = -1
NO_SEQUENCE: Final = -1
NO_LEADER_EPOCH: Final = -1

MAX_DECOMPRESSED_BYTES: Final = 128 << 20
_MAX_SEQUENCE: Final = 2**31 - 1


class BatchHeader(NamedTuple):
    base_offset: int
    batch_length: int
    partition_leader_epoch: int
    magic: int
    crc: int
    attributes: int
    last_offset_delta: int
    base_timestamp: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    record_count: int

    @property
    def last_offset(self) -> int:
        return self.base_offset + self.last_offset_delta

    @property
    def next_offset(self) -> int:
        return self.base_offset + self.last_offset_delta + 1

    @property
    def size_bytes(self) -> int:
        return LOG_OVERHEAD + self.batch_length

    @property
    def codec(self) -> int:
        return self.attributes & CODEC_MASK

    @property
    def timestamp_type(self) -> int:
        return LOG_APPEND_TIME if self.attributes & LOG_APPEND_TIME_BIT else CREATE_TIME

    @property
    def is_transactional(self) -> bool:
        return self.attributes & TRANSACTIONAL_BIT != 0

    @property
    def is_control(self) -> bool:
        return self.attributes & CONTROL_BIT != 0

    @property
    def delete_horizon_ms(self) -> int | None:
        return self.base_timestamp if self.attributes & DELETE_HORIZON_BIT else None

    @property
    def has_producer_id(self) -> bool:
        return self.producer_id > NO_PRODUCER_ID

    @property
    def last_sequence(self) -> int:
        if self.base_sequence == NO_SEQUENCE:
            return NO_SEQUENCE
        return increment_sequence(self.base_sequence, self.last_offset_delta)


def increment_sequence(sequence: int, increment: int) -> int:
    """The sequence number `increment` records on; after the largest int32 comes 0."""
    return (sequence + increment) & _MAX_SEQUENCE


def read_header(buf: Buffer, pos: int = 0) -> BatchHeader:
    """The header at `pos`. Only its presence is checked."""
    try:
        return BatchHeader._make(HEADER.unpack_from(buf, pos))
    except struct.error:
        raise CorruptRecord("the record batch ends within its header") from None


def batch_size_at(buf: Buffer, pos: int) -> int:
    """The whole size that the batch at `pos` claims, without looking whether it is there."""
    try:
        (length,) = LENGTH.unpack_from(buf, pos + LENGTH_POSITION)
    except struct.error:
        raise CorruptRecord("the record batch ends within its length") from None
    return LOG_OVERHEAD + int(length)


def check_crc(buf: Buffer, pos: int, size: int) -> bool:
    """Whether the `size` bytes of a batch at `pos` have the checksum that they carry."""
    view = memoryview(buf)
    (crc,) = CRC.unpack_from(view, pos + CRC_POSITION)
    return bool(crc32c(view[pos + ATTRIBUTES_POSITION : pos + size]) == crc)


def validate_stored_batch(buf: Buffer, pos: int = 0) -> BatchHeader:
    """Check what holds for every batch in a log, also for a compacted one: magic, size and checksum."""
    view = memoryview(buf)
    header = read_header(view, pos)
    end = pos + LOG_OVERHEAD + header.batch_length
    if header.magic != MAGIC:
        raise (InvalidRecord if header.magic in (0, 1) else CorruptRecord)(
            f"record batch of magic {header.magic}"
        )
    if end - pos < BATCH_OVERHEAD or end > len(view):
        raise CorruptRecord(f"a record batch of {end - pos} bytes where {len(view) - pos} remain")
    if crc32c(view[pos + ATTRIBUTES_POSITION : end]) != header.crc:
        raise CorruptRecord("the record batch does not have the checksum that it carries")
    if header.record_count < 0 or header.last_offset_delta < 0:
        raise InvalidRecord(
            f"a record batch of {header.record_count} records, last offset delta {header.last_offset_delta}"
        )
    return header


def validate_batch(buf: Buffer, pos: int = 0) -> BatchHeader:
    """Check what a producer's batch must satisfy, without looking at its records."""
    header = validate_stored_batch(buf, pos)
    if header.record_count < 1 or header.last_offset_delta != header.record_count - 1:
        raise InvalidRecord(
            f"{header.record_count} records do not make a last offset delta of {header.last_offset_delta}"
        )
    attributes = header.attributes
    if attributes & CONTROL_BIT:
        raise InvalidRecord("clients do not write control records")
    if header.producer_id > NO_PRODUCER_ID and header.base_sequence < 0:
        raise InvalidRecord(f"sequence number {header.base_sequence} with producer id {header.producer_id}")
    if attributes & CODEC_MASK > compression.ZSTD:
        raise UnsupportedCompression(f"there is no compression codec {attributes & CODEC_MASK}")
    return header


def validate_records(batch: Buffer, *, compacted: bool = False, limit: int = MAX_DECOMPRESSED_BYTES) -> int:
    """Look at every record of a producer's valid batch; returns the largest timestamp.

    Offset deltas run 0, 1, 2, …; the sizes of the records and of their parts add up; a compacted topic
    takes no record without a key.
    """
    max_timestamp = NO_TIMESTAMP
    for expected, record in enumerate(iter_records(batch, limit=limit)):
        if record.offset_delta != expected:
            raise InvalidRecord(f"offset delta {record.offset_delta} where {expected} is due", expected)
        if compacted and record.key is None:
            raise InvalidRecord("a compacted topic takes no record without a key", expected)
        max_timestamp = max(max_timestamp, record.timestamp)
    return max_timestamp


def assign_offsets(buf: memoryview | bytearray, base_offset: int, leader_epoch: int, pos: int = 0) -> None:
    """Patch base offset and leader epoch in place; the checksum does not cover them."""
    OFFSET.pack_into(buf, pos, base_offset)
    EPOCH.pack_into(buf, pos + EPOCH_POSITION, leader_epoch)


def stamp_append_time(buf: memoryview | bytearray, now_ms: int, pos: int = 0) -> None:
    """Make the batch's timestamps the time of its appending, in place, with a new checksum."""
    view = memoryview(buf)
    (attributes,) = ATTRIBUTES.unpack_from(view, pos + ATTRIBUTES_POSITION)
    ATTRIBUTES.pack_into(view, pos + ATTRIBUTES_POSITION, attributes | LOG_APPEND_TIME_BIT)
    MAX_TIMESTAMP.pack_into(view, pos + MAX_TIMESTAMP_POSITION, now_ms)
    crc = crc32c(view[pos + ATTRIBUTES_POSITION : pos + batch_size_at(view, pos)])
    CRC.pack_into(view, pos + CRC_POSITION, crc)


def iter_batches(buf: Buffer, pos: int = 0) -> Iterator[tuple[int, BatchHeader]]:
    """Yield position and header of each batch; CorruptRecord where the buffer does not end with a batch."""
    view = memoryview(buf)
    end = len(view)
    unpack_from, make = HEADER.unpack_from, BatchHeader._make
    while pos < end:
        if end - pos < BATCH_OVERHEAD:
            raise CorruptRecord(f"{end - pos} bytes are no record batch")
        header = make(unpack_from(view, pos))
        size = LOG_OVERHEAD + header.batch_length
        if size < BATCH_OVERHEAD or size > end - pos:
            raise CorruptRecord(f"a record batch of {size} bytes where {end - pos} remain")
        yield pos, header
        pos += size


def payload_of(batch: Buffer, header: BatchHeader, limit: int = MAX_DECOMPRESSED_BYTES) -> bytes:
    """The decompressed records of one batch."""
    size = header.size_bytes
    view = memoryview(batch)
    if not BATCH_OVERHEAD <= size <= len(view):
        raise CorruptRecord(f"a record batch of {size} bytes where {len(view)} remain")
    return compression.decompress(header.codec, view[BATCH_OVERHEAD:size], limit)


def iter_records(batch: Buffer, *, limit: int = MAX_DECOMPRESSED_BYTES) -> Iterator[Record]:
    """Yield the records of one batch; at most `limit` bytes are decompressed for them."""
    header = read_header(batch)
    if header.magic != MAGIC:
        raise InvalidRecord(f"record batch of magic {header.magic}")
    if header.record_count == 0:
        return iter(())
    return decode_records(
        payload_of(batch, header, limit),
        header.record_count,
        header.base_offset,
        header.base_timestamp,
        header.max_timestamp if header.attributes & LOG_APPEND_TIME_BIT else None,
    )


def iter_spans(payload: bytes, header: BatchHeader) -> Iterator[RecordSpan]:
    """Yield where the records of a batch's decompressed payload lie."""
    return record_spans(payload, header.record_count)


def _assemble(header: BatchHeader, payload: Buffer) -> bytes:
    """Put header and compressed payload together, with the right length and checksum."""
    out = bytearray(HEADER.pack(*header))
    out += payload
    LENGTH.pack_into(out, LENGTH_POSITION, len(out) - LOG_OVERHEAD)
    CRC.pack_into(out, CRC_POSITION, crc32c(memoryview(out)[ATTRIBUTES_POSITION:]))
    return bytes(out)


def build_batch(
    records: Iterable[Record],
    *,
    base_offset: int = 0,
    codec: int = compression.NONE,
    level: int | None = None,
    producer_id: int = NO_PRODUCER_ID,
    producer_epoch: int = NO_PRODUCER_EPOCH,
    base_sequence: int = NO_SEQUENCE,
    leader_epoch: int = NO_LEADER_EPOCH,
    transactional: bool = False,
    control: bool = False,
    log_append_time_ms: int | None = None,
) -> bytes:
    """One batch of the records, at consecutive offsets from `base_offset` on, as Java writes it."""
    records = records if isinstance(records, Sequence) else list(records)
    if not records:
        raise ValueError("a record batch has one record at least")
    attributes = codec | TRANSACTIONAL_BIT * transactional | CONTROL_BIT * control
    max_timestamp = max(record.timestamp for record in records)
    if log_append_time_ms is not None:
        attributes |= LOG_APPEND_TIME_BIT
        max_timestamp = log_append_time_ms
    base_timestamp = records[0].timestamp
    header = BatchHeader(
        base_offset,
        0,
        leader_epoch,
        MAGIC,
        0,
        attributes,
        len(records) - 1,
        base_timestamp,
        max_timestamp,
        producer_id,
        producer_epoch,
        base_sequence,
        len(records),
    )
    return _assemble(header, compression.compress(codec, encode_records(records, base_timestamp), level))


def replace_payload(header: BatchHeader, payload: Buffer, codec: int, level: int | None = None) -> bytes:
    """A batch of this header around another payload, compressed with `codec`.

    Length, checksum and codec are set here; record count and timestamps are the caller's (`header._replace`).
    """
    attributes = header.attributes & ~CODEC_MASK | codec
    return _assemble(header._replace(attributes=attributes), compression.compress(codec, payload, level))


def recompress(
    batch: Buffer, codec: int, level: int | None = None, limit: int = MAX_DECOMPRESSED_BYTES
) -> bytes:
    """The same batch with its records compressed by another codec."""
    header = read_header(batch)
    return replace_payload(header, payload_of(batch, header, limit), codec, level)
