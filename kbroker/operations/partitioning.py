"""Which partition a record goes to that names none: the one that Java's producer would choose for its key.

Records with a key: murmur2 of it, as all of Kafka's clients that follow Java do. The records of one publish
that have none go together to one partition, those of the next publish to the next.
"""

from __future__ import annotations

from functools import lru_cache
from struct import unpack_from
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kbroker.topics.registry import Topic

_SEED = 0x9747B28C
_M = 0x5BD1E995
_MASK = 0xFFFFFFFF
_SHORT_KEY_BYTES = 64
_MOST_KEYS = 4096  # short ones, whose hash is remembered: they come again
_MOST_TOPICS = 10_000  # whose next partition is remembered


def murmur2(data: bytes) -> int:
    """The 32 bits of Kafka's variant, unsigned."""
    length = len(data)
    value = _SEED ^ length
    for word in unpack_from(f"<{length >> 2}I", data):
        word = word * _M & _MASK
        value = (value * _M & _MASK) ^ ((word ^ word >> 24) * _M & _MASK)
    if rest := data[length & ~3 :]:
        value = (value ^ int.from_bytes(rest, "little")) * _M & _MASK
    value = (value ^ value >> 13) * _M & _MASK
    return value ^ value >> 15


_remembered_murmur2 = lru_cache(_MOST_KEYS)(murmur2)


def partition_of_key(key: bytes, partitions: int) -> int:
    hashed = _remembered_murmur2(key) if len(key) <= _SHORT_KEY_BYTES else murmur2(key)
    return (hashed & 0x7FFFFFFF) % partitions


class RoundRobin:
    """The partitions for records without a key, one publish after the other."""

    def __init__(self) -> None:
        self._last: dict[bytes, int] = {}  # by topic id

    def next_partition(self, topic: Topic) -> int:
        chosen = (self._last.get(topic.topic_id, -1) + 1) % topic.partitions
        if len(self._last) >= _MOST_TOPICS:
            self._last.clear()
        self._last[topic.topic_id] = chosen
        return chosen
