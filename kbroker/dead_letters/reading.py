"""The records that become dead letters, read from the log that they are in, some at a time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from kbroker.coordinators.shares.records import Dead
from kbroker.dead_letters.building import Batch, Given, Place, batches
from kbroker.dead_letters.intents import Intent
from kbroker.pending import Pending, Steps, wait
from kbroker.protocol.records import Record, iter_batches, iter_records
from kbroker.storage.interface import Log

READ_BYTES = 256 * 1024


def read(source: Log, offset: int, last: int) -> Steps[tuple[bytes | None, int]]:
    """Batches of the log from this offset on, and where to go on. None: retention has taken them."""
    if offset < source.log_start_offset:
        return None, min(last + 1, source.log_start_offset)
    if offset >= source.high_watermark:
        return b"", last + 1
    read = source.read(offset, READ_BYTES)
    if isinstance(read, Pending):
        read = yield from wait(read)
    return read.data, max(read.next_offset, offset + 1)


def dead_letters_in(
    place: Place,
    dead: Dead,
    data: bytes | None,
    offsets: range,
    intent: Intent,
    *,
    now_ms: int,
    sequence: int,
    max_bytes: int,
) -> list[Batch]:
    """Of the records in the data: what is none, or was compacted away, leaves no dead letter."""
    records: Iterable[tuple[int, Record | None]]
    if data is None:
        records = ((offset, None) for offset in offsets)
    else:
        records = _records(memoryview(data), offsets.start, dead.last_offset)
    given = (Given(offset, dead.delivery_count, dead.reason, record) for offset, record in records)
    return list(
        batches(
            place, given, now_ms=now_ms, copy_record=intent.copy_record, max_bytes=max_bytes,
            producer_id=intent.producer_id, sequence=sequence,
        )
    )  # fmt: skip


def _records(data: memoryview, first: int, last: int) -> Iterator[tuple[int, Record | None]]:
    for position, header in iter_batches(data):
        if header.base_offset > last:
            return
        if header.is_control or header.last_offset < first:
            continue
        for record in iter_records(data[position : position + header.size_bytes]):
            if first <= record.offset <= last:
                yield record.offset, record
