"""The header of a record batch of format 2 (magic 2): reading, checking and patching a batch from outside.

The batch, big endian; the records behind the header may be compressed (codec.py has their layout):

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
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final, NamedTuple

from kbroker.protocol.records.compression import ZSTD
from kbroker.protocol.records.crc32c import crc32c
from kbroker.protocol.records.errors import CorruptRecord, InvalidRecord, UnsupportedCompression

if TYPE_CHECKING:
    from typing_extensions import Buffer

HEADER: Final = struct.Struct(">qiibIhiqqqhii")
# Bound here: a method of an imported object would be looked up again at every call.
unpack_start: Final = struct.Struct(">qi").unpack_from  # base offset, batch length
unpack_length_magic_attributes: Final = struct.Struct(">8xi4xb4xh").unpack_from
START_AND_EPOCH: Final = struct.Struct(">qii")  # … and the leader epoch: what the broker may set
_OFFSET: Final = struct.Struct(">q")
_LENGTH: Final = struct.Struct(">i")
_LENGTH_POSITION: Final = 8
_EPOCH: Final = struct.Struct(">i")
_EPOCH_POSITION: Final = 12
MAGIC_POSITION: Final = 16
_CRC: Final = struct.Struct(">I")
_CRC_POSITION: Final = 17
_ATTRIBUTES: Final = struct.Struct(">h")
ATTRIBUTES_POSITION: Final = 21
LOW_ATTRIBUTES_POSITION: Final = ATTRIBUTES_POSITION + 1  # of the byte with all bits that have a meaning
LAST_OFFSET_DELTA_POSITION: Final = 23
unpack_last_offset_delta: Final = struct.Struct(">i").unpack_from
_MAX_TIMESTAMP: Final = struct.Struct(">q")
_MAX_TIMESTAMP_POSITION: Final = 35

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

MAX_SEQUENCE: Final = 2**31 - 1


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
    return (sequence + increment) & MAX_SEQUENCE


def read_header(buf: Buffer, pos: int = 0) -> BatchHeader:
    """The header at `pos`. Only its presence is checked."""
    try:
        return BatchHeader._make(HEADER.unpack_from(buf, pos))
    except struct.error:
        raise CorruptRecord("the record batch ends within its header") from None


def batch_size_at(buf: Buffer, pos: int) -> int:
    """The whole size that the batch or old message at `pos` claims, without looking whether it is there."""
    try:
        (length,) = _LENGTH.unpack_from(buf, pos + _LENGTH_POSITION)
    except struct.error:
        raise CorruptRecord("the record batch ends within its length") from None
    return LOG_OVERHEAD + int(length)


def magic_at(buf: Buffer, pos: int = 0) -> int:
    """The format of the batch or old message at `pos`: the magic stands in the same place in all of them."""
    view = memoryview(buf)
    if pos + MAGIC_POSITION >= len(view):
        raise CorruptRecord("the record batch ends before its magic")
    return view[pos + MAGIC_POSITION]


def check_crc(buf: Buffer, pos: int, size: int) -> bool:
    """Whether the `size` bytes of a batch at `pos` have the checksum that they carry."""
    view = memoryview(buf)
    if size < BATCH_OVERHEAD or pos + size > len(view):
        return False
    (crc,) = _CRC.unpack_from(view, pos + _CRC_POSITION)
    return bool(crc32c(view[pos + ATTRIBUTES_POSITION : pos + size]) == crc)


def validate_stored_batch(buf: Buffer, pos: int = 0) -> BatchHeader:
    """Check what holds for every batch in a log, also for a compacted one: magic, size and checksum."""
    view = memoryview(buf)
    try:
        header = BatchHeader._make(HEADER.unpack_from(view, pos))
        magic = header.magic
    except struct.error:
        magic = magic_at(view, pos)
        if magic == MAGIC:
            raise CorruptRecord("the record batch ends within its header") from None
    if magic != MAGIC:
        raise (InvalidRecord if 0 <= magic < MAGIC else CorruptRecord)(f"a record batch of magic {magic}")
    size = LOG_OVERHEAD + header.batch_length
    if size < BATCH_OVERHEAD or size > len(view) - pos:
        raise CorruptRecord(f"a record batch of {size} bytes where {len(view) - pos} remain")
    if crc32c(view[pos + ATTRIBUTES_POSITION : pos + size]) != header.crc:
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
    if attributes & CODEC_MASK > ZSTD:
        raise UnsupportedCompression(f"there is no compression codec {attributes & CODEC_MASK}")
    return header


def assign_offsets(buf: memoryview | bytearray, base_offset: int, leader_epoch: int, pos: int = 0) -> None:
    """Patch base offset and leader epoch in place; the checksum does not cover them."""
    _OFFSET.pack_into(buf, pos, base_offset)
    _EPOCH.pack_into(buf, pos + _EPOCH_POSITION, leader_epoch)


def stamp_append_time(buf: memoryview | bytearray, now_ms: int, pos: int = 0) -> None:
    """Make the time of appending the timestamp of every record of the batch, in place."""
    (attributes,) = _ATTRIBUTES.unpack_from(buf, pos + ATTRIBUTES_POSITION)
    _stamp(buf, attributes | LOG_APPEND_TIME_BIT, now_ms, pos)


def stamp_create_time(buf: memoryview | bytearray, max_timestamp: int, pos: int = 0) -> None:
    """Let the records' own timestamps, of which `max_timestamp` is the largest, hold, in place."""
    (attributes,) = _ATTRIBUTES.unpack_from(buf, pos + ATTRIBUTES_POSITION)
    _stamp(buf, attributes & ~LOG_APPEND_TIME_BIT, max_timestamp, pos)


def _stamp(buf: memoryview | bytearray, attributes: int, max_timestamp: int, pos: int) -> None:
    view = memoryview(buf)
    _ATTRIBUTES.pack_into(view, pos + ATTRIBUTES_POSITION, attributes)
    _MAX_TIMESTAMP.pack_into(view, pos + _MAX_TIMESTAMP_POSITION, max_timestamp)
    crc = crc32c(view[pos + ATTRIBUTES_POSITION : pos + batch_size_at(view, pos)])
    _CRC.pack_into(view, pos + _CRC_POSITION, crc)


def iter_batches(buf: Buffer, pos: int = 0) -> Iterator[tuple[int, BatchHeader]]:
    """Yield position and header of each batch; CorruptRecord where the buffer does not end with a batch.

    Only sizes are checked. Each batch is whole, so that it may be sliced out by position and `size_bytes`.
    """
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


def assemble_batch(header: BatchHeader, payload: Buffer) -> bytes:
    """The batch of a header and its payload, compressed as the header says, with its length and checksum."""
    try:
        out = bytearray(HEADER.pack(*header))
    except struct.error:
        raise InvalidRecord(f"fields beyond their size in {header}") from None
    out += payload
    _LENGTH.pack_into(out, _LENGTH_POSITION, len(out) - LOG_OVERHEAD)
    _CRC.pack_into(out, _CRC_POSITION, crc32c(memoryview(out)[ATTRIBUTES_POSITION:]))
    return bytes(out)
