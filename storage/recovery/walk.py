"""Walking over the batches of a `.log` that may be damaged: what is there, what is lost, where it ends."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from kbroker.protocol.records import BatchHeader, RecordError
from kbroker.storage.files import Files, OpenFile
from kbroker.storage.recovery.batch_scan import scan
from kbroker.storage.recovery.damage import damage_at
from kbroker.storage.segments.file_segment import Damage


class Batch(NamedTuple):
    position: int
    header: BatchHeader
    data: memoryview  # only good until the next one is asked for


class Lost(NamedTuple):
    """Offsets from `expected` on are not there, but something behind them is."""

    damage: Damage
    expected: int
    reason: str


class Tail(NamedTuple):
    """No valid batch follows: these bytes are the last of the log, whole once or torn."""

    position: int
    expected: int
    reason: str


class _Misplaced(RecordError):
    """A batch does not have the offset that is due, and that is its own fault: no checksum covers it."""


def gap(expected: int, offset: int, compacted_offset: int) -> bool:
    """Whether something is missing before `offset`: only compaction leaves gaps, below `compacted_offset`."""
    return offset > max(expected, compacted_offset)


def walk(
    files: Files,
    file: OpenFile,
    size_bytes: int,
    position: int,
    expected: int,
    *,
    limit: int | None,
    compacted_offset: int,
) -> Iterator[Batch | Lost | Tail]:
    """From a batch boundary, where offset `expected` is due, to the end, or to a Tail.

    `limit`: where the next segment begins; None: this is the last one.
    """
    while True:
        try:
            for start, header, data in scan(files, file, position, size_bytes):
                if header.base_offset != expected:
                    _check_place(files, file, size_bytes, start, header, expected, compacted_offset)
                    if gap(expected, header.base_offset, compacted_offset):
                        damage = Damage(start, start, header.base_offset)
                        yield Lost(damage, expected, "they are missing")
                yield Batch(start, header, data)
                expected = header.next_offset
                position = start + header.size_bytes
        except RecordError as error:
            found = damage_at(files, file, size_bytes, position, expected, limit)
            if found is None:
                yield Tail(position, expected, str(error))
                return
            yield Lost(found, expected, f"damaged up to position {found.end}: {error}")
            position, expected = found.end, found.next_offset
        else:
            break
    if limit is not None and gap(expected, limit, compacted_offset):
        yield Lost(Damage(size_bytes, size_bytes, limit), expected, "they are missing")


def _check_place(
    files: Files,
    file: OpenFile,
    size_bytes: int,
    start: int,
    header: BatchHeader,
    expected: int,
    compacted_offset: int,
) -> None:
    """Raises if a batch with another offset than `expected` contradicts what lies around it."""
    try:
        _, following, _ = next(scan(files, file, start + header.size_bytes, size_bytes))
    except (RecordError, StopIteration):
        wrong = gap(expected, header.base_offset, compacted_offset)
    else:
        wrong = following.base_offset < header.next_offset
    if wrong or header.base_offset < expected:
        raise _Misplaced(f"offset {header.base_offset} where {expected} is due")
