"""A consumer of an internal topic: from the first record on, and what comes after."""

from __future__ import annotations

from typing import Any, NamedTuple

from kbroker.pending import Pending
from kbroker.protocol.codec import decode
from kbroker.protocol.coordinator_records import (
    classic_groups,
    consumer_groups,
    decode_value,
    offsets,
    share_groups,
    streams_groups,
    transactions,
)
from kbroker.protocol.errors import ErrorCode
from kbroker.protocol.message import schema_of
from kbroker.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from kbroker.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from kbroker.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from kbroker.protocol.records import iter_batches, iter_records

OFFSETS, TRANSACTIONS = "__consumer_offsets", "__transaction_state"
LATEST, EARLIEST = -1, -2
_MODULES = {
    OFFSETS: (offsets, classic_groups, consumer_groups, share_groups, streams_groups),
    TRANSACTIONS: (transactions,),
}


class Read(NamedTuple):
    offset: int
    key: Any
    value: Any


def offset_at(cluster, topic: str, partition: int, timestamp: int) -> int:
    asked = ListOffsetsTopic(topic, [ListOffsetsPartition(partition, -1, timestamp)])
    (answered,) = cluster.send(ListOffsetsRequest(-1, topics=[asked]), 7).topics
    assert answered.partitions[0].error_code == 0
    return int(answered.partitions[0].offset)


def fetch(cluster, topic: str, partition: int, offset: int, version: int = 12, **fields: Any) -> Any:
    """The partition's part of the answer, or the Pending of the answer."""
    wanted = FetchPartition(partition=partition, fetch_offset=offset, partition_max_bytes=1 << 20)
    request = FetchRequest(topics=[FetchTopic(topic=topic, partitions=[wanted])], max_bytes=1 << 20, **fields)
    answer = cluster.send(request, version)
    return answer if isinstance(answer, Pending) else answer.responses[0].partitions[0]


class Reader:
    def __init__(self, cluster, topic: str = OFFSETS, timestamp: int = EARLIEST) -> None:
        self._cluster = cluster
        self._topic = topic
        asked = MetadataRequest([MetadataRequestTopic(name=topic)], allow_auto_topic_creation=True)
        (described,) = cluster.send(asked, 9).topics
        assert (described.error_code, described.is_internal) == (0, True)
        self.positions = {
            partition: offset_at(cluster, topic, partition, timestamp)
            for partition in range(len(described.partitions))
        }

    def read(self) -> list[Read]:
        """What is new, decoded; partition by partition."""
        found: list[Read] = []
        for partition in self.positions:
            while records := self._read(partition):
                found += records
        return found

    def _read(self, partition: int) -> list[Read]:
        answer = fetch(self._cluster, self._topic, partition, self.positions[partition])
        assert answer.error_code == ErrorCode.NONE
        found = []
        data = memoryview(bytes(answer.records or b""))
        for position, header in iter_batches(data):
            for record in iter_records(data[position : position + header.size_bytes]):
                if record.offset >= self.positions[partition]:
                    found.append(Read(record.offset, *_decoded(self._topic, record.key, record.value)))
                    self.positions[partition] = record.offset + 1
        return found


def _decoded(topic: str, key: bytes, value: bytes | None) -> tuple[Any, Any]:
    record_type = int.from_bytes(key[:2], "big")
    types = [
        cls
        for module in _MODULES[topic]
        for cls in vars(module).values()
        if isinstance(cls, type)
        and cls.__module__ == module.__name__
        and schema_of(cls).kind != "struct"
        and schema_of(cls).api_key == record_type
    ]
    key_type, value_type = sorted(types, key=lambda cls: schema_of(cls).kind)
    decoded = decode(key_type, 0, memoryview(key), 2)[0]
    return decoded, None if value is None else decode_value(value_type, value)
