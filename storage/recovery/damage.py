"""Where damage in a log ends: it is kept apart, so that what follows can still be read."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from kbroker.protocol.records import (
    BATCH_OVERHEAD,
    LOG_OVERHEAD,
    BatchHeader,
    RecordError,
    check_crc,
    read_header,
)
from kbroker.protocol.records.batch import unpack_start
from kbroker.storage.files import Files, OpenFile
from kbroker.storage.recovery.batch_scan import CHUNK_BYTES, scan
from kbroker.storage.segments.file_segment import Damage

# Leader epoch and magic stand side by side: an epoch below 2^24, or -1 for none, and 2.
_EPOCH_AND_MAGIC = re.compile(rb"(?=(?:\x00[\x00-\xff]{3}|\xff{4})\x02)")
_PATTERN_BYTES = 5


class Loss(NamedTuple):
    """Offsets whose records were there once and are not any more."""

    first_offset: int
    next_offset: int  # behind the last that is lost
    reason: str


def damage_at(
    files: Files, file: OpenFile, size_bytes: int, position: int, expected: int, limit: int | None
) -> Damage | None:
    """The damage that begins at `position`, where offset `expected` was due. None: nothing valid follows.

    `limit`: where the next segment begins; None: this is the last one.
    """
    found = _batch_behind(files, file, size_bytes, position, expected, limit)
    if found is not None:
        return Damage(position, found[0], found[1].base_offset)
    return Damage(position, size_bytes, limit) if limit is not None else None


def has_batch_behind(files: Files, file: OpenFile, size_bytes: int, position: int, expected: int) -> bool:
    """Whether a valid batch lies somewhere behind `position`, where none is."""
    return _batch_behind(files, file, size_bytes, position, expected, None) is not None


def offsets_at(files: Files, file: OpenFile, size_bytes: int, position: int, expected: int) -> int:
    """How many offsets the last batch of a file had, which is damaged; 0: it is torn, or none at all."""
    data = files.read_at(file, size_bytes - position, position)
    if len(data) < BATCH_OVERHEAD:
        return 0
    header = read_header(data)
    complete = header.base_offset == expected and BATCH_OVERHEAD <= header.size_bytes <= len(data)
    if not complete and not check_crc(data, 0, len(data)):
        return 0
    return max(1, min(header.last_offset_delta + 1, header.record_count))


def _batch_behind(
    files: Files, file: OpenFile, size_bytes: int, position: int, expected: int, limit: int | None
) -> tuple[int, BatchHeader] | None:
    for candidate in _candidates(files, file, size_bytes, position):
        start = files.read_at(file, LOG_OVERHEAD, candidate)
        if len(start) < LOG_OVERHEAD:
            continue
        base_offset, length = unpack_start(start)
        if base_offset <= expected or (limit is not None and base_offset >= limit):
            continue
        if not BATCH_OVERHEAD - LOG_OVERHEAD <= length <= size_bytes - candidate - LOG_OVERHEAD:
            continue
        try:
            _, header, _ = next(scan(files, file, candidate, candidate + LOG_OVERHEAD + length))
        except (RecordError, StopIteration):
            continue
        return candidate, header
    return None


def _candidates(files: Files, file: OpenFile, size_bytes: int, position: int) -> Iterator[int]:
    """Positions behind `position` where a batch may begin."""
    start = files.read_at(file, LOG_OVERHEAD, position)
    claimed = position + LOG_OVERHEAD + int.from_bytes(start[8:], "big", signed=True)
    if position < claimed < size_bytes:
        yield claimed
    for begin in range(position + 1, size_bytes, CHUNK_BYTES):
        data = files.read_at(file, CHUNK_BYTES + LOG_OVERHEAD + _PATTERN_BYTES - 1, begin)
        for match in _EPOCH_AND_MAGIC.finditer(data, LOG_OVERHEAD):
            yield begin + match.start() - LOG_OVERHEAD
