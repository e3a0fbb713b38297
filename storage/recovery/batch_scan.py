"""Reading a `.log` from front to back, checking every batch: for recovery, import and compaction."""

from __future__ import annotations

from collections.abc import Iterator

from kbroker.protocol.records import (
    BATCH_OVERHEAD,
    LOG_OVERHEAD,
    BatchHeader,
    CorruptRecord,
    validate_stored_batch,
)
from kbroker.protocol.records.batch import unpack_start
from kbroker.storage.files import Files, OpenFile

CHUNK_BYTES = 1 << 20


def scan(
    files: Files, file: OpenFile, position: int, end: int, *, chunk_bytes: int = CHUNK_BYTES
) -> Iterator[tuple[int, BatchHeader, memoryview]]:
    """Yield position, header and bytes of each batch; RecordError at the first that is not whole and valid.

    A batch's bytes are only good until the next one is asked for.
    """
    wanted = chunk_bytes
    while position < end:
        data = memoryview(files.read_at(file, min(wanted, end - position), position))
        start = 0
        size = BATCH_OVERHEAD
        while len(data) - start >= BATCH_OVERHEAD:
            size = LOG_OVERHEAD + unpack_start(data, start)[1]
            if size < BATCH_OVERHEAD or position + start + size > end:
                raise CorruptRecord(f"a batch of {size} bytes where {end - position - start} remain")
            if start + size > len(data):
                break
            yield position + start, validate_stored_batch(data, start), data[start : start + size]
            start += size
        if not start and len(data) < min(size, end - position) and wanted >= size:
            raise CorruptRecord("the file ends within a batch")
        if not start and end - position < BATCH_OVERHEAD:
            raise CorruptRecord(f"{end - position} bytes are no batch")
        wanted = max(chunk_bytes, 0 if start else size)
        position += start
