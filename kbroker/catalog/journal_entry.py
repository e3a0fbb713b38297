"""An entry of the offset journal, as bytes: offsets that were committed together.

Big-endian:

    length            4  of what follows the CRC
    CRC-32            4  of what follows it
    format            1  2; an entry of format 1 is JSON and begins with "[": [sequence number, [row, …]]
    sequence number   8
    then for each partition of each group
      partition       4
      offset          8
      leader epoch    4
      commit time     8  ms
      expiry time     8  ms; -2^63: none of its own
      topic id       16
      sequence        8  of the commit
      lengths         4  each, in bytes, of what comes now
      group, topic, metadata

An entry is whole if its length and its CRC are right. Where one is not, the entries end.
"""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Mapping
from typing import NamedTuple

from kbroker.catalog.database import CatalogTooNew
from kbroker.coordinators.groups.store import CommittedOffset, Offsets, TopicPartition

_HEAD = struct.Struct(">II")
_START = struct.Struct(">BQ")
_PARTITION = struct.Struct(">iqiqq16sqIII")
_FORMAT = 2
_JSON = ord("[")
_NO_EXPIRY = -(2**63)


class Entry(NamedTuple):
    sequence: int
    groups: dict[str, dict[TopicPartition, CommittedOffset]]


def encode(sequence: int, groups: Mapping[str, Offsets]) -> bytes:
    parts = [_START.pack(_FORMAT, sequence)]
    for group_id, offsets in groups.items():
        group = group_id.encode()
        for (topic, partition), committed in offsets.items():
            offset, leader_epoch, metadata, commit_ms, expire_ms, topic_id, commit_sequence = committed
            name, text = topic.encode(), metadata.encode()
            numbers = _PARTITION.pack(
                partition,
                offset,
                leader_epoch,
                commit_ms,
                _NO_EXPIRY if expire_ms is None else expire_ms,
                topic_id,
                commit_sequence,
                len(group),
                len(name),
                len(text),
            )
            parts += (numbers, group, name, text)
    payload = b"".join(parts)
    return _HEAD.pack(len(payload), zlib.crc32(payload)) + payload


def read_whole(data: bytes) -> tuple[list[Entry], int]:
    """The whole entries at the start of the data, and where they end."""
    entries = []
    position = 0
    while len(data) - position > _HEAD.size:
        length, crc = _HEAD.unpack_from(data, position)
        start = position + _HEAD.size
        payload = data[start : start + length]
        if not length or len(payload) < length or zlib.crc32(payload) != crc:
            break
        entries.append(_decoded_json(payload) if payload[0] == _JSON else _decoded(payload))
        position = start + length
    return entries, position


def _decoded(payload: bytes) -> Entry:
    if payload[0] != _FORMAT:
        raise CatalogTooNew(f"the offset journal has entries of format {payload[0]}, of a newer kbroker")
    _, sequence = _START.unpack_from(payload)
    entry = Entry(sequence, {})
    position = _START.size
    while position < len(payload):
        partition, offset, leader_epoch, commit_ms, expire_ms, topic_id, commit_sequence, *lengths = (
            _PARTITION.unpack_from(payload, position)
        )
        position += _PARTITION.size
        texts = []
        for length in lengths:
            texts.append(payload[position : position + length].decode())
            position += length
        group_id, topic, metadata = texts
        entry.groups.setdefault(group_id, {})[TopicPartition(topic, partition)] = CommittedOffset(
            offset,
            leader_epoch,
            metadata,
            commit_ms,
            None if expire_ms == _NO_EXPIRY else expire_ms,
            topic_id,
            commit_sequence,
        )
    return entry


def _decoded_json(payload: bytes) -> Entry:
    sequence, rows = json.loads(payload)
    entry = Entry(sequence, {})
    for group_id, topic, partition, *values, topic_id, commit_sequence in rows:
        committed = CommittedOffset._make((*values, bytes.fromhex(topic_id), commit_sequence))
        entry.groups.setdefault(group_id, {})[TopicPartition(topic, partition)] = committed
    return entry
