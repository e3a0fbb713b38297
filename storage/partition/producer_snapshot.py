"""The `.snapshot` file: the producers of a log at one offset, in Kafka's format (version 1).

    0  version   int16     1
    2  crc       uint32    CRC32C of everything behind it
    6  count     int32
   10  entries, each: producer id int64, epoch int16, last sequence int32, last offset int64,
       offset delta int32, timestamp int64, coordinator epoch int32, open transaction's first offset int64

Only the last batch of each producer is in it.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable

from kbroker.protocol.records.batch import MAX_SEQUENCE
from kbroker.protocol.records.crc32c import crc32c
from kbroker.storage.partition.producer_state import BatchMetadata, ProducerEntry

VERSION = 1
_VERSION_CRC = struct.Struct(">hI")
_COUNT = struct.Struct(">i")
_ENTRY = struct.Struct(">qhiqiqiq")
_ENTRIES_POSITION = _VERSION_CRC.size


class CorruptSnapshot(ValueError):
    pass


def encode(entries: Iterable[ProducerEntry]) -> bytes:
    packed = []
    for entry in entries:
        last = entry.batches[-1] if entry.batches else None
        packed.append(
            _ENTRY.pack(
                entry.producer_id,
                entry.producer_epoch,
                last.last_sequence if last else -1,
                last.last_offset if last else -1,
                last.last_offset - last.base_offset if last else 0,
                entry.last_timestamp,
                entry.coordinator_epoch,
                entry.current_txn_first_offset,
            )
        )
    body = _COUNT.pack(len(packed)) + b"".join(packed)
    return _VERSION_CRC.pack(VERSION, crc32c(body)) + body


def decode(data: bytes) -> list[ProducerEntry]:
    try:
        version, crc = _VERSION_CRC.unpack_from(data)
        (count,) = _COUNT.unpack_from(data, _ENTRIES_POSITION)
    except struct.error:
        raise CorruptSnapshot("the snapshot ends within its header") from None
    if version != VERSION:
        raise CorruptSnapshot(f"snapshot of version {version}")
    if crc32c(data[_ENTRIES_POSITION:]) != crc:
        raise CorruptSnapshot("the snapshot does not have the checksum that it carries")
    body = data[_ENTRIES_POSITION + _COUNT.size :]
    if len(body) != count * _ENTRY.size:
        raise CorruptSnapshot(f"{len(body)} bytes are not {count} producers")
    entries = []
    for fields in _ENTRY.iter_unpack(body):
        producer_id, epoch, last_sequence, last_offset, delta, timestamp, coordinator, txn = fields
        batches = []
        if last_offset >= 0:
            base_sequence = (last_sequence - delta) & MAX_SEQUENCE if last_sequence >= 0 else -1
            batches.append(
                BatchMetadata(base_sequence, last_sequence, last_offset - delta, last_offset, timestamp)
            )
        entries.append(ProducerEntry(producer_id, epoch, coordinator, timestamp, txn, batches))
    return entries
