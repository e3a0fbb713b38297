"""ConsumerGroupHeartbeat, API key 68."""

from __future__ import annotations

from kbroker.protocol.message import field, message, struct
from kbroker.protocol.types import INT16, INT32, STRING, UUID, Array


@struct
class TopicPartitions:
    topic_id: bytes = field(UUID)
    partitions: list[int] = field(Array(INT32))


@message(api_key=68, kind="request", versions=(0, 1), flexible=0)
class ConsumerGroupHeartbeatRequest:
    group_id: str = field(STRING)
    member_id: str = field(STRING)
    member_epoch: int = field(INT32)
    instance_id: str | None = field(STRING, nullable_since=0, default=None)
    rack_id: str | None = field(STRING, nullable_since=0, default=None)
    rebalance_timeout_ms: int = field(INT32, default=-1)
    subscribed_topic_names: list[str] | None = field(Array(STRING), nullable_since=0, default=None)
    subscribed_topic_regex: str | None = field(STRING, since=1, nullable_since=1, default=None)
    server_assignor: str | None = field(STRING, nullable_since=0, default=None)
    topic_partitions: list[TopicPartitions] | None = field(
        Array(TopicPartitions), nullable_since=0, default=None
    )


@struct
class Assignment:
    topic_partitions: list[TopicPartitions] = field(Array(TopicPartitions))


@message(api_key=68, kind="response", versions=(0, 1), flexible=0)
class ConsumerGroupHeartbeatResponse:
    throttle_time_ms: int = field(INT32)
    error_code: int = field(INT16)
    error_message: str | None = field(STRING, nullable_since=0, default=None)
    member_id: str | None = field(STRING, nullable_since=0, default=None)
    member_epoch: int = field(INT32)
    heartbeat_interval_ms: int = field(INT32)
    assignment: Assignment | None = field(Assignment, nullable_since=0, default=None)
