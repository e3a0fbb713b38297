"""The partition of __consumer_offsets that Kafka keeps a group's offsets in.

Transactions name it: it stands for a group's offsets among the partitions of a transaction, in
DescribeTransactions too. `__transaction_state` has its transactional ids in partitions the same way.
"""

from __future__ import annotations

import struct

from kbroker.topics.names import OFFSETS_TOPIC

__all__ = ["OFFSETS_TOPIC", "offsets_partition"]


def offsets_partition(group_id: str, partitions: int) -> int:
    """``partitions``: offsets.topic.num.partitions."""
    return abs(_java_hash(group_id)) % partitions


def _java_hash(text: str) -> int:
    """Java's String.hashCode; its one value without a positive counterpart counts as 0."""
    encoded = text.encode("utf-16-be", "surrogatepass")
    value = 0
    for unit in struct.unpack(f">{len(encoded) // 2}H", encoded):
        value = value * 31 + unit & 0xFFFFFFFF
    return value - (1 << 32) if value > 1 << 31 else value & 0x7FFFFFFF
