"""Batches of one producer that follow each other, checked in one go.

What is taken here is what `validate_batch` takes, and less: whoever gets None looks at each batch by itself.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import NamedTuple

from kbroker.protocol.records.batch import (
    ATTRIBUTES_POSITION,
    HEADER,
    LOG_OVERHEAD,
    MAGIC,
    MAX_SEQUENCE,
    START_AND_EPOCH,
    BatchHeader,
)
from kbroker.protocol.records.compression import ZSTD
from kbroker.protocol.records.crc32c import crc32c


class BatchRun(NamedTuple):
    first: BatchHeader
    counts: list[int]  # of records, by batch
    timestamps: list[int]  # the largest of each batch


def read_run(batches: Sequence[memoryview]) -> BatchRun | None:
    """None unless all are intact, from base offset 0, in sequence, and only their codec sets them apart."""
    counts: list[int] = []
    timestamps: list[int] = []
    unpack = HEADER.unpack_from
    try:
        first = BatchHeader._make(unpack(batches[0]))
        producer_id, epoch, expected = first.producer_id, first.producer_epoch, first.base_sequence
        if producer_id >= 0 and expected < 0:
            return None
        for batch in batches:
            offset, length, _, magic, crc, attributes, delta, _, timestamp, of, of_epoch, sequence, count = (
                unpack(batch)
            )
            if (
                offset
                or length + LOG_OVERHEAD != len(batch)
                or magic != MAGIC
                or not 0 <= attributes <= ZSTD
                or count != delta + 1
                or delta < 0
                or of != producer_id
                or of_epoch != epoch
                or (sequence != expected and of >= 0)
                or crc32c(batch[ATTRIBUTES_POSITION:]) != crc
            ):
                return None
            expected = (sequence + count) & MAX_SEQUENCE
            counts.append(count)
            timestamps.append(timestamp)
    except struct.error:
        return None
    return BatchRun(first, counts, timestamps)


def assign_run(batches: Sequence[memoryview], offsets: Sequence[int], leader_epoch: int) -> None:
    """As `assign_offsets`, for each of a run's batches."""
    pack_into = START_AND_EPOCH.pack_into
    for batch, offset in zip(batches, offsets, strict=True):
        pack_into(batch, 0, offset, len(batch) - LOG_OVERHEAD, leader_epoch)
