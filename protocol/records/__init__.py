"""Record batches of format 2 as the rest of the broker sees them: this module is their public face.

The header and everything done without looking at the records is in batch.py, the layout of the single
record in codec.py; their public names are re-exported here. This module owns what needs both: reading
the records of a batch, compressed or not, and building batches, control batches among them.

Reading hostile bytes raises RecordError (CorruptRecord, InvalidRecord, UnsupportedCompression) or nothing
else, and never holds more than `limit` decompressed bytes.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Sequence
from enum import IntEnum
from typing import TYPE_CHECKING, Final, NamedTuple

from kbroker.protocol.records import compression
from kbroker.protocol.records.batch import (
    BATCH_OVERHEAD,
    CODEC_MASK,
    CONTROL_BIT,
    CREATE_TIME,
    DELETE_HORIZON_BIT,
    LOG_APPEND_TIME,
    LOG_APPEND_TIME_BIT,
    LOG_OVERHEAD,
    MAGIC,
    NO_LEADER_EPOCH,
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    TRANSACTIONAL_BIT,
    BatchHeader,
    assemble_batch,
    assign_offsets,
    batch_size_at,
    check_crc,
    increment_sequence,
    iter_batches,
    magic_at,
    read_header,
    stamp_append_time,
    stamp_create_time,
    validate_batch,
    validate_stored_batch,
)
from kbroker.protocol.records.codec import (
    NO_TIMESTAMP,
    Headers,
    Record,
    RecordSpan,
    decode_records,
    encode_record,
    encode_records,
    record_spans,
)
from kbroker.protocol.records.errors import (
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
    "LOG_APPEND_TIME_BIT",
    "LOG_OVERHEAD",
    "MAGIC",
    "MAX_DECOMPRESSED_BYTES",
    "NO_LEADER_EPOCH",
    "NO_PRODUCER_EPOCH",
    "NO_PRODUCER_ID",
    "NO_SEQUENCE",
    "NO_TIMESTAMP",
    "BatchHeader",
    "ControlRecord",
    "ControlType",
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
    "build_control_batch",
    "build_empty_batch",
    "check_crc",
    "increment_sequence",
    "iter_batches",
    "iter_payload",
    "iter_records",
    "iter_spans",
    "magic_at",
    "parse_control",
    "payload_of",
    "read_header",
    "recompress",
    "replace_payload",
    "replace_records",
    "stamp_append_time",
    "stamp_create_time",
    "validate_batch",
    "validate_stored_batch",
]

MAX_DECOMPRESSED_BYTES: Final = 128 << 20

_CONTROL_KEY: Final = struct.Struct(">hh")  # version, type
_CONTROL_VALUE: Final = struct.Struct(">hi")  # version, coordinator epoch


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
        raise InvalidRecord(f"a record batch of magic {header.magic}")
    if header.record_count == 0:
        return iter(())
    return iter_payload(payload_of(batch, header, limit), header)


def iter_payload(payload: bytes, header: BatchHeader) -> Iterator[Record]:
    """Yield the records in the payload of their batch (`payload_of`)."""
    return decode_records(
        payload,
        header.record_count,
        header.base_offset,
        header.base_timestamp,
        header.max_timestamp if header.attributes & LOG_APPEND_TIME_BIT else None,
    )


def iter_spans(payload: bytes, header: BatchHeader) -> Iterator[RecordSpan]:
    """Yield where the records lie in the payload of their batch (`payload_of`)."""
    return record_spans(payload, header.record_count)


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
        base_offset=base_offset,
        batch_length=0,
        partition_leader_epoch=leader_epoch,
        magic=MAGIC,
        crc=0,
        attributes=attributes,
        last_offset_delta=len(records) - 1,
        base_timestamp=base_timestamp,
        max_timestamp=max_timestamp,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        base_sequence=base_sequence,
        record_count=len(records),
    )
    return assemble_batch(header, compression.compress(codec, encode_records(records, base_timestamp), level))


def replace_payload(header: BatchHeader, payload: Buffer, codec: int, level: int | None = None) -> bytes:
    """A batch of this header around another payload, which is compressed here with `codec`.

    Length, checksum and codec are set here; record count and timestamps are the caller's (`header._replace`).
    """
    attributes = header.attributes & ~CODEC_MASK | codec
    return assemble_batch(header._replace(attributes=attributes), compression.compress(codec, payload, level))


def recompress(
    batch: Buffer, codec: int, level: int | None = None, limit: int = MAX_DECOMPRESSED_BYTES
) -> bytes:
    """The same batch with its records compressed by another codec."""
    header = read_header(batch)
    return replace_payload(header, payload_of(batch, header, limit), codec, level)


def replace_records(
    header: BatchHeader,
    records: Sequence[Record],
    *,
    delete_horizon_ms: int | None = None,
    level: int | None = None,
) -> bytes:
    """What remains of a batch when compaction keeps only `records` of it, in Kafka's way.

    The records keep their offsets and the batch its offset range, producer and codec. A delete horizon
    takes the place of the base timestamp; one that the batch already has stays.
    """
    if delete_horizon_ms is None:
        delete_horizon_ms = header.delete_horizon_ms
    attributes = header.attributes
    base_timestamp = records[0].timestamp
    if delete_horizon_ms is not None:
        attributes |= DELETE_HORIZON_BIT
        base_timestamp = delete_horizon_ms
    max_timestamp = header.max_timestamp
    if not attributes & LOG_APPEND_TIME_BIT:
        max_timestamp = max(record.timestamp for record in records)
    payload = b"".join(
        [encode_record(record, record.timestamp - base_timestamp, record.offset_delta) for record in records]
    )
    header = header._replace(
        attributes=attributes,
        base_timestamp=base_timestamp,
        max_timestamp=max_timestamp,
        record_count=len(records),
    )
    return replace_payload(header, payload, header.codec, level)


def build_empty_batch(header: BatchHeader) -> bytes:
    """The batch without records that stands for `header`'s when compaction keeps none of its records.

    It keeps the offset range and the producer's last sequence number.
    """
    attributes = header.attributes & ~(CODEC_MASK | DELETE_HORIZON_BIT)
    header = header._replace(attributes=attributes, base_timestamp=NO_TIMESTAMP, record_count=0)
    return assemble_batch(header, b"")


class ControlType(IntEnum):
    """How a transaction ended, by the number in its marker's key."""

    ABORT = 0
    COMMIT = 1


class ControlRecord(NamedTuple):
    """A transaction marker."""

    type: ControlType
    coordinator_epoch: int


def build_control_batch(
    control_type: ControlType,
    *,
    producer_id: int,
    producer_epoch: int,
    coordinator_epoch: int,
    timestamp: int,
    base_offset: int = 0,
    leader_epoch: int = NO_LEADER_EPOCH,
) -> bytes:
    """The batch of one marker that ends a transaction in a partition."""
    marker = Record(
        timestamp=timestamp,
        key=_CONTROL_KEY.pack(0, control_type),
        value=_CONTROL_VALUE.pack(0, coordinator_epoch),
    )
    return build_batch(
        [marker],
        base_offset=base_offset,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        leader_epoch=leader_epoch,
        transactional=True,
        control=True,
    )


def parse_control(batch: Buffer) -> ControlRecord | None:
    """The marker in a control batch; None for a control record that is no transaction marker.

    Later versions of key and value only add fields at the end, so that these are read as version 0.
    """
    record = next(iter_records(batch), None)
    if record is None or record.key is None or len(record.key) < _CONTROL_KEY.size:
        raise InvalidRecord("a control batch without a control record")
    version, number = _CONTROL_KEY.unpack_from(record.key)
    if version < 0:
        raise InvalidRecord(f"a control record of version {version}")
    if number not in (ControlType.ABORT, ControlType.COMMIT):
        return None
    if record.value is None or len(record.value) < _CONTROL_VALUE.size:
        raise InvalidRecord("a transaction marker that ends early")
    version, coordinator_epoch = _CONTROL_VALUE.unpack_from(record.value)
    if version < 0:
        raise InvalidRecord(f"a transaction marker of version {version}")
    return ControlRecord(ControlType(number), coordinator_epoch)
