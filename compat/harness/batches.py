"""Record batches of format 2, right and wrong ones: every header field can be set.

Layout: base_offset int64, batch_length int32, partition_leader_epoch int32, magic int8, crc uint32 (of all
that follows), attributes int16, last_offset_delta int32, base_timestamp int64, max_timestamp int64,
producer_id int64, producer_epoch int16, base_sequence int32, record_count int32, records.
"""

from __future__ import annotations

import struct
import time
from collections.abc import Sequence
from dataclasses import dataclass

from crc32c import crc32c

from .wire import unsigned_varint

BEFORE_CRC = struct.Struct(">qiib")
AFTER_CRC = struct.Struct(">hiqqqhii")
BODY_FIELDS = (
    "attributes",
    "last_offset_delta",
    "base_timestamp",
    "max_timestamp",
    "producer_id",
    "producer_epoch",
    "base_sequence",
    "record_count",
)
TRANSACTIONAL, CONTROL, LOG_APPEND_TIME = 0x10, 0x20, 0x08


@dataclass(frozen=True, slots=True)
class Record:
    value: bytes | None = b"value"
    key: bytes | None = None
    headers: tuple[tuple[str, bytes | None], ...] = ()
    timestamp_delta: int = 0


def batch(
    records: Sequence[Record] = (Record(),),
    *,
    timestamp_ms: int | None = None,
    base_offset: int = 0,
    leader_epoch: int = -1,
    magic: int = 2,
    attributes: int = 0,
    last_offset_delta: int | None = None,
    producer_id: int = -1,
    producer_epoch: int = -1,
    base_sequence: int = -1,
    record_count: int | None = None,
    max_timestamp_ms: int | None = None,
    payload: bytes | None = None,
    crc_change: int = 0,
    length_change: int = 0,
) -> bytes:
    """A batch as bytes; `payload` replaces the encoded records, the `_change`s spoil what is computed."""
    first_ms = int(time.time() * 1000) if timestamp_ms is None else timestamp_ms
    last_ms = first_ms + max((record.timestamp_delta for record in records), default=0)
    body = AFTER_CRC.pack(
        attributes,
        len(records) - 1 if last_offset_delta is None else last_offset_delta,
        first_ms,
        last_ms if max_timestamp_ms is None else max_timestamp_ms,
        producer_id,
        producer_epoch,
        base_sequence,
        len(records) if record_count is None else record_count,
    ) + (encode_records(records) if payload is None else payload)
    length = BEFORE_CRC.size - 12 + 4 + len(body) + length_change
    head = BEFORE_CRC.pack(base_offset, length, leader_epoch, magic)
    return head + struct.pack(">I", (crc32c(body) + crc_change) & 0xFFFFFFFF) + body


def whole_batches(records: bytes) -> list[dict[str, int]]:
    """The headers of the whole batches; Kafka may cut the last one short, and clients drop what is cut."""
    found = []
    position = 0
    while len(records) - position >= BEFORE_CRC.size:
        base_offset, length, leader_epoch, magic = BEFORE_CRC.unpack_from(records, position)
        if position + 12 + length > len(records):
            break
        body = records[position + BEFORE_CRC.size + 4 : position + 12 + length]
        (crc,) = struct.unpack_from(">I", records, position + BEFORE_CRC.size)
        found.append(
            {
                "base_offset": base_offset,
                "size": 12 + length,
                "leader_epoch": leader_epoch,
                "magic": magic,
                "crc is right": crc == crc32c(body),
                "crc of the records": crc32c(body[AFTER_CRC.size :]),  # without timestamps of the header
                **dict(zip(BODY_FIELDS, AFTER_CRC.unpack_from(body), strict=True)),
            }
        )
        position += 12 + length
    return found


def encode_records(records: Sequence[Record]) -> bytes:
    return b"".join(_record(delta, record) for delta, record in enumerate(records))


def _record(offset_delta: int, record: Record) -> bytes:
    parts = [b"\0", _varint(record.timestamp_delta), _varint(offset_delta)]
    parts += [_bytes(record.key), _bytes(record.value), _varint(len(record.headers))]
    for name, value in record.headers:
        parts += [_bytes(name.encode()), _bytes(value)]
    body = b"".join(parts)
    return _varint(len(body)) + body


def _bytes(content: bytes | None) -> bytes:
    return _varint(-1) if content is None else _varint(len(content)) + content


def _varint(value: int) -> bytes:
    return unsigned_varint(value << 1 if value >= 0 else (-value << 1) - 1)
