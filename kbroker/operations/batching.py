"""Records made into batches that a log takes: encoded in turns, compressed on a worker if they are large."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple

from kbroker.pending import wait
from kbroker.protocol.records import (
    BATCH_OVERHEAD,
    MAGIC,
    NO_LEADER_EPOCH,
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    BatchHeader,
    Record,
    increment_sequence,
)
from kbroker.protocol.records.batch import TRANSACTIONAL_BIT, assemble_batch
from kbroker.protocol.records.codec import encode_record
from kbroker.protocol.records.compression import NONE, compress
from kbroker.storage.errors import RecordTooLarge

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kbroker.requests.long_requests import Steps
    from kbroker.storage.worker import Worker

_TURN: Final = 200  # records encoded between two pauses
_FEW: Final = 16  # records, each of which may be large
_COMPRESSED_AT_ONCE: Final = 32 * 1024  # bytes that the loop compresses itself


class Producer(NamedTuple):
    """Whom the batches are of, and the sequence number that the first record has in its log."""

    producer_id: int
    producer_epoch: int
    base_sequence: int
    transactional: bool = False


NO_PRODUCER: Final = Producer(NO_PRODUCER_ID, NO_PRODUCER_EPOCH, NO_SEQUENCE)


class Batch(NamedTuple):
    data: memoryview
    records: Sequence[Record]


def batches(
    worker: Worker,
    records: Sequence[Record],
    max_bytes: int,
    codec: int = NONE,
    producer: Producer = NO_PRODUCER,
    *,
    split: bool = True,
) -> Steps[list[Batch]]:
    """Of these records, in their order. RecordTooLarge: one batch, or one record, has more than max_bytes.

    ``split``: a new batch begins where the one before it would get too large, before compression.
    """
    if codec == NONE and len(records) <= _FEW:
        for record in records:
            if record.value is not None and len(record.value) > max_bytes:  # before it is copied
                raise RecordTooLarge(
                    f"one record has a value of {len(record.value)} bytes, the topic takes {max_bytes} "
                    "(max.message.bytes)"
                )
    made: list[Batch] = []
    parts: list[bytes] = []
    first, size = 0, BATCH_OVERHEAD
    base_timestamp = records[0].timestamp
    for index, record in enumerate(records):
        part = encode_record(record, record[0] - base_timestamp, index - first)
        size += len(part)
        if size > max_bytes and split and parts:
            if codec == NONE:
                _check_size(size - len(part), index - first, max_bytes)
            made.append((yield from _assembled(worker, parts, records[first:index], codec, producer)))
            producer = _after(producer, index - first)
            first, base_timestamp, parts = index, record[0], []
            part = encode_record(record, 0, 0)
            size = BATCH_OVERHEAD + len(part)
        parts.append(part)
        if not (index + 1) % _TURN:
            yield None
    if codec == NONE:
        _check_size(size, len(parts), max_bytes)  # before it is put together
    made.append(
        (yield from _assembled(worker, parts, records[first:] if first else records, codec, producer))
    )
    for batch in made:
        _check_size(len(batch.data), len(batch.records), max_bytes)
    return made


def _check_size(size: int, count: int, max_bytes: int) -> None:
    if size > max_bytes:
        what = "one record makes" if count == 1 else f"{count} records make"
        raise RecordTooLarge(
            f"{what} a batch of {size} bytes, the topic takes {max_bytes} (max.message.bytes)"
        )


def _assembled(
    worker: Worker, parts: list[bytes], records: Sequence[Record], codec: int, producer: Producer
) -> Steps[Batch]:
    payload = b"".join(parts)
    if codec != NONE:
        if len(payload) > _COMPRESSED_AT_ONCE:
            payload = yield from wait(worker.run(partial(compress, codec, payload)))
        else:
            payload = compress(codec, payload)
    count = len(records)
    base_timestamp = records[0][0]
    header = BatchHeader(
        0,
        0,
        NO_LEADER_EPOCH,
        MAGIC,
        0,
        codec | TRANSACTIONAL_BIT * producer.transactional,
        count - 1,
        base_timestamp,
        base_timestamp if count == 1 else max([record[0] for record in records]),
        producer.producer_id,
        producer.producer_epoch,
        producer.base_sequence,
        count,
    )
    return Batch(memoryview(bytearray(assemble_batch(header, payload))), records)


def _after(producer: Producer, count: int) -> Producer:
    if producer.producer_id == NO_PRODUCER_ID:
        return producer
    return producer._replace(base_sequence=increment_sequence(producer.base_sequence, count))
