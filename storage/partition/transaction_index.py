"""The `.txnindex` of a segment: the aborted transactions whose markers it holds, in the order of the markers.

 0  version             int16   0
 2  producer id         int64
10  first offset        int64   of the transaction
18  last offset         int64   of its marker
26  last stable offset  int64   once the marker was written
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from typing import NamedTuple

VERSION = 0
_ENTRY = struct.Struct(">hqqqq")
ENTRY_BYTES = _ENTRY.size


class AbortedEntry(NamedTuple):
    producer_id: int
    first_offset: int
    last_offset: int
    last_stable_offset: int


def encode(entries: Iterable[AbortedEntry]) -> bytes:
    return b"".join([_ENTRY.pack(VERSION, *entry) for entry in entries])


def decode(data: bytes) -> list[AbortedEntry]:
    """Raises ValueError if this is not a transaction index."""
    if len(data) % ENTRY_BYTES:
        raise ValueError(f"{len(data)} bytes are not a transaction index")
    entries = []
    for version, *fields in _ENTRY.iter_unpack(data):
        if version != VERSION:
            raise ValueError(f"aborted transaction of version {version}")
        entries.append(AbortedEntry(*fields))
    return entries
