"""Committed offsets as bytes, for the journal.

Big-endian, for each partition of each group:

    partition       4
    offset          8
    leader epoch    4
    commit time     8  ms
    expiry time     8  ms; -2^63: none of its own
    topic id       16
    sequence        8  of the commit
    lengths         4  each, in bytes, of what comes now
    group, topic, metadata
"""

from __future__ import annotations

import struct
from collections.abc import Mapping

from kbroker.coordinators.groups.store import CommittedOffset, Offsets, TopicPartition

_PARTITION = struct.Struct(">iqiqq16sqIII")
_NO_EXPIRY = -(2**63)


def encode(groups: Mapping[str, Offsets]) -> bytes:
    parts: list[bytes] = []
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
    return b"".join(parts)


def decode(data: bytes) -> dict[str, dict[TopicPartition, CommittedOffset]]:
    groups: dict[str, dict[TopicPartition, CommittedOffset]] = {}
    position = 0
    while position < len(data):
        partition, offset, leader_epoch, commit_ms, expire_ms, topic_id, commit_sequence, *lengths = (
            _PARTITION.unpack_from(data, position)
        )
        position += _PARTITION.size
        texts = []
        for length in lengths:
            texts.append(data[position : position + length].decode())
            position += length
        group_id, topic, metadata = texts
        groups.setdefault(group_id, {})[TopicPartition(topic, partition)] = CommittedOffset(
            offset,
            leader_epoch,
            metadata,
            commit_ms,
            None if expire_ms == _NO_EXPIRY else expire_ms,
            topic_id,
            commit_sequence,
        )
    return groups
