"""Metadata, API key 3."""

from __future__ import annotations

from kbroker.protocol import topic_ids
from kbroker.protocol.message import field, message, struct
from kbroker.protocol.types import BOOL, INT16, INT32, STRING, UUID, Array


@struct
class MetadataRequestTopic:
    topic_id: bytes = field(UUID, since=topic_ids.METADATA_SINCE, ignorable=True)
    name: str | None = field(STRING, nullable_since=10)


@message(api_key=3, kind="request", versions=(0, 13), flexible=9)
class MetadataRequest:
    topics: list[MetadataRequestTopic] | None = field(Array(MetadataRequestTopic), nullable_since=1)
    allow_auto_topic_creation: bool = field(BOOL, since=4, default=True)
    include_cluster_authorized_operations: bool = field(BOOL, since=8, until=10)
    include_topic_authorized_operations: bool = field(BOOL, since=8)


@struct
class MetadataResponseBroker:
    node_id: int = field(INT32)
    host: str = field(STRING)
    port: int = field(INT32)
    rack: str | None = field(STRING, since=1, nullable_since=1, default=None, ignorable=True)


@struct
class MetadataResponsePartition:
    error_code: int = field(INT16)
    partition_index: int = field(INT32)
    leader_id: int = field(INT32)
    leader_epoch: int = field(INT32, since=7, default=-1, ignorable=True)
    replica_nodes: list[int] = field(Array(INT32))
    isr_nodes: list[int] = field(Array(INT32))
    offline_replicas: list[int] = field(Array(INT32), since=5, ignorable=True)


@struct
class MetadataResponseTopic:
    error_code: int = field(INT16)
    name: str | None = field(STRING, nullable_since=12)
    topic_id: bytes = field(UUID, since=topic_ids.METADATA_SINCE, ignorable=True)
    is_internal: bool = field(BOOL, since=1, ignorable=True)
    partitions: list[MetadataResponsePartition] = field(Array(MetadataResponsePartition))
    topic_authorized_operations: int = field(INT32, since=8, default=-2147483648)


@message(api_key=3, kind="response", versions=(0, 13), flexible=9)
class MetadataResponse:
    throttle_time_ms: int = field(INT32, since=3, ignorable=True)
    brokers: list[MetadataResponseBroker] = field(Array(MetadataResponseBroker))
    cluster_id: str | None = field(STRING, since=2, nullable_since=2, default=None, ignorable=True)
    controller_id: int = field(INT32, since=1, default=-1, ignorable=True)
    topics: list[MetadataResponseTopic] = field(Array(MetadataResponseTopic))
    cluster_authorized_operations: int = field(INT32, since=8, until=10, default=-2147483648)
    error_code: int = field(INT16, since=13, ignorable=True)
