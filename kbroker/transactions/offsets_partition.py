"""The partition of __consumer_offsets that Kafka keeps a group's offsets in.

Transactions name it: it stands for a group's offsets among the partitions of a transaction, in
DescribeTransactions too. `__transaction_state` has its transactional ids in partitions the same way.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from kbroker.topics.names import OFFSETS_TOPIC

if TYPE_CHECKING:
    from kbroker.broker import Broker


def partition_of_group(broker: Broker, group_id: str) -> int:
    topic = broker.topics.get(OFFSETS_TOPIC)
    count = broker.settings["offsets.topic.num.partitions"] if topic is None else topic.partitions
    return offsets_partition(group_id, count)


def offsets_partition(group_id: str, partitions: int) -> int:
    """Of a group or transactional id, in a topic with so many partitions."""
    return abs(_java_hash(group_id)) % partitions


def _java_hash(text: str) -> int:
    """Java's String.hashCode; its one value without a positive counterpart counts as 0."""
    encoded = text.encode("utf-16-be", "surrogatepass")
    value = 0
    for unit in struct.unpack(f">{len(encoded) // 2}H", encoded):
        value = value * 31 + unit & 0xFFFFFFFF
    return value - (1 << 32) if value > 1 << 31 else value & 0x7FFFFFFF
