"""States of share partitions as bytes, for the table and for the journal.

Big-endian. Runs, in the table: a byte for the format, then for each run

    first offset    8
    last offset     8
    state           1
    delivery count  1

A change, in the journal, for each share partition:

    topic id       16
    partition       4
    start offset    8
    lengths         4  each: of the group in bytes, and the number of runs
    group, runs        the latter as above, without the byte
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import starmap
from typing import overload

from kbroker.catalog.errors import CatalogTooNew
from kbroker.coordinators.shares.state import RecordState, Run, ShareStateChange
from kbroker.coordinators.shares.store import ShareKey

_RUN = struct.Struct(">qqBB")
_CHANGE = struct.Struct(">16siqII")
_FORMAT = 1
_STATES = {int(state): state for state in RecordState}

Partition = tuple[bytes, int]
"""Topic id and partition."""
Changes = dict[str, dict[Partition, list[ShareStateChange]]]
"""By group and partition, in the order in which they are made."""


def encode_runs(runs: Iterable[Run]) -> bytes:
    return bytes((_FORMAT,)) + b"".join(starmap(_RUN.pack, runs))


class StoredRuns(Sequence[Run]):
    """Runs that stay bytes until somebody looks: most share partitions are idle."""

    __slots__ = ("_data",)

    def __init__(self, data: bytes) -> None:
        if data[0] != _FORMAT:
            raise CatalogTooNew(f"a share partition is stored in format {data[0]}, by a newer kbroker")
        self._data = data

    def __iter__(self) -> Iterator[Run]:
        return iter(_runs(memoryview(self._data)[1:]))

    def __len__(self) -> int:
        return len(self._data) // _RUN.size

    @overload
    def __getitem__(self, index: int) -> Run: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Run]: ...
    def __getitem__(self, index: int | slice) -> Run | Sequence[Run]:
        return tuple(self)[index]

    def __eq__(self, other: object) -> bool:
        return tuple(self) == tuple(other) if isinstance(other, Sequence) else NotImplemented

    def __hash__(self) -> int:
        return hash(tuple(self))


def encode_changes(changes: Mapping[ShareKey, ShareStateChange]) -> bytes:
    parts: list[bytes] = []
    for (group_id, topic_id, partition), (start_offset, runs) in changes.items():
        group = group_id.encode()
        parts += (_CHANGE.pack(topic_id, partition, start_offset, len(group), len(runs)), group)
        parts += starmap(_RUN.pack, runs)
    return b"".join(parts)


def decode_changes(data: bytes) -> Changes:
    changes: Changes = {}
    view, position = memoryview(data), 0
    while position < len(data):
        topic_id, partition, start_offset, group_bytes, count = _CHANGE.unpack_from(data, position)
        group_end = position + _CHANGE.size + group_bytes
        group_id = data[position + _CHANGE.size : group_end].decode()
        position = group_end + count * _RUN.size
        change = ShareStateChange(start_offset, _runs(view[group_end:position]))
        add(changes, group_id, (topic_id, partition), (change,))
    return changes


def add(changes: Changes, group_id: str, partition: Partition, more: Sequence[ShareStateChange]) -> None:
    changes.setdefault(group_id, {}).setdefault(partition, []).extend(more)


def _runs(data: memoryview) -> tuple[Run, ...]:
    return tuple(
        Run(first, last, _STATES[state], count) for first, last, state, count in _RUN.iter_unpack(data)
    )
