"""Where damage in old data ends: it is kept apart, so that what follows can still be read."""

from __future__ import annotations

import struct
from collections.abc import Iterator

from kbroker.protocol.records import LOG_OVERHEAD, MAGIC, RecordError
from kbroker.storage.batch_scan import CHUNK_BYTES, scan
from kbroker.storage.file_segment import Damage, FileSegment
from kbroker.storage.files import Files
from kbroker.storage.leader_epochs import LeaderEpochs


def damage_at(
    files: Files,
    segments: list[FileSegment],
    segment: FileSegment,
    position: int,
    expected: int,
    epochs: LeaderEpochs,
) -> Damage | None:
    """The damage that begins at `position`, where offset `expected` was due. None: nothing valid follows."""
    for candidate in _boundaries_after(files, segment, position, expected, epochs):
        try:
            _, header, _ = next(scan(files, segment.handle, candidate, segment.size_bytes))
        except (RecordError, StopIteration):
            continue
        if header.base_offset > expected:
            return Damage(position, candidate, header.base_offset)
    following = segments.index(segment) + 1
    if following < len(segments):
        return Damage(position, segment.size_bytes, segments[following].base_offset)
    return None


def _boundaries_after(
    files: Files, segment: FileSegment, position: int, expected: int, epochs: LeaderEpochs
) -> Iterator[int]:
    """Positions behind `position` where a batch may begin."""
    size = segment.size_bytes
    start = files.read_at(segment.handle, LOG_OVERHEAD, position)
    claimed = position + LOG_OVERHEAD + int.from_bytes(start[8:], "big", signed=True)
    if position < claimed < size:
        yield claimed
    # A batch has its leader epoch and its magic side by side: look for those that may follow.
    current = epochs.epoch_for_offset(expected)
    following = [epoch for epoch, _ in epochs.entries() if epoch >= current] or [current]
    patterns = [struct.pack(">ib", epoch, MAGIC) for epoch in following]
    for begin in range(position + 1, size, CHUNK_BYTES):
        data = files.read_at(segment.handle, CHUNK_BYTES + LOG_OVERHEAD + len(patterns[0]), begin)
        for pattern in patterns:
            found = data.find(pattern, LOG_OVERHEAD)
            while found >= 0:
                yield begin + found - LOG_OVERHEAD
                found = data.find(pattern, found + 1)
