"""What consumers put into JoinGroup and SyncGroup: the embedded protocol of type "consumer".

The broker passes these bytes on unread; it reads them to describe groups and to serve classic and KIP-848
members of one group side by side. Each value starts with its version as int16. A version above the newest
known is read as the newest, as every Kafka client does: newer versions only append fields.
"""

from __future__ import annotations

from typing import Final, TypeVar

from kbroker.protocol.codec import decode, encode
from kbroker.protocol.message import field, message, schema_of, struct
from kbroker.protocol.types import BYTES, INT32, STRING, Array, ProtocolError

M = TypeVar("M")

PROTOCOL_TYPE: Final = "consumer"


@struct
class TopicPartition:
    topic: str = field(STRING)
    partitions: list[int] = field(Array(INT32))


@message(kind="data", versions=(0, 3))
class ConsumerProtocolSubscription:
    topics: list[str] = field(Array(STRING))
    user_data: bytes | None = field(BYTES, nullable_since=0, default=None)
    owned_partitions: list[TopicPartition] = field(Array(TopicPartition), since=1, ignorable=True)
    generation_id: int = field(INT32, since=2, default=-1, ignorable=True)
    rack_id: str | None = field(STRING, since=3, nullable_since=3, default=None, ignorable=True)


@message(kind="data", versions=(0, 3))
class ConsumerProtocolAssignment:
    assigned_partitions: list[TopicPartition] = field(Array(TopicPartition))
    user_data: bytes | None = field(BYTES, nullable_since=0, default=None)


def read_subscription(data: bytes | memoryview) -> ConsumerProtocolSubscription:
    return _read(ConsumerProtocolSubscription, data)


def read_assignment(data: bytes | memoryview) -> ConsumerProtocolAssignment:
    return _read(ConsumerProtocolAssignment, data)


def write(value: ConsumerProtocolSubscription | ConsumerProtocolAssignment, version: int) -> bytes:
    """The bytes of a subscription or assignment, its version in front."""
    return b"".join(encode(value, version, bytearray(version.to_bytes(2, "big"))))


def _read(cls: type[M], data: bytes | memoryview) -> M:
    if len(data) < 2:
        raise ProtocolError(f"{cls.__name__}: no version")
    version = int.from_bytes(data[:2], "big", signed=True)
    if version < 0:
        raise ProtocolError(f"{cls.__name__} has no version {version}")
    value, _end = decode(cls, min(version, schema_of(cls).versions[1]), memoryview(data), 2)
    return value
