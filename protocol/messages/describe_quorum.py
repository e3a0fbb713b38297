"""DescribeQuorum, API key 55."""

from __future__ import annotations

from kbroker.protocol.message import field, message, struct
from kbroker.protocol.types import INT16, INT32, INT64, STRING, UINT16, UUID, Array


@struct
class RequestPartitionData:
    partition_index: int = field(INT32)


@struct
class RequestTopicData:
    topic_name: str = field(STRING)
    partitions: list[RequestPartitionData] = field(Array(RequestPartitionData))


@message(api_key=55, kind="request", versions=(0, 2), flexible=0)
class DescribeQuorumRequest:
    topics: list[RequestTopicData] = field(Array(RequestTopicData))


@struct
class ReplicaState:
    replica_id: int = field(INT32)
    replica_directory_id: bytes = field(UUID, since=2)
    log_end_offset: int = field(INT64)
    last_fetch_timestamp: int = field(INT64, since=1, default=-1, ignorable=True)
    last_caught_up_timestamp: int = field(INT64, since=1, default=-1, ignorable=True)


@struct
class ResponsePartitionData:
    partition_index: int = field(INT32)
    error_code: int = field(INT16)
    error_message: str | None = field(STRING, since=2, nullable_since=2, ignorable=True)
    leader_id: int = field(INT32)
    leader_epoch: int = field(INT32)
    high_watermark: int = field(INT64)
    current_voters: list[ReplicaState] = field(Array(ReplicaState))
    observers: list[ReplicaState] = field(Array(ReplicaState))


@struct
class ResponseTopicData:
    topic_name: str = field(STRING)
    partitions: list[ResponsePartitionData] = field(Array(ResponsePartitionData))


@struct
class Listener:
    name: str = field(STRING)
    host: str = field(STRING)
    port: int = field(UINT16)


@struct
class Node:
    node_id: int = field(INT32)
    listeners: list[Listener] = field(Array(Listener))


@message(api_key=55, kind="response", versions=(0, 2), flexible=0)
class DescribeQuorumResponse:
    error_code: int = field(INT16)
    error_message: str | None = field(STRING, since=2, nullable_since=2, ignorable=True)
    topics: list[ResponseTopicData] = field(Array(ResponseTopicData))
    nodes: list[Node] = field(Array(Node), since=2)
