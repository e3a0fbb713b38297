"""ShareGroupHeartbeat, API key 76."""

from __future__ import annotations

from kbroker.protocol.message import field, message, struct
from kbroker.protocol.types import INT16, INT32, STRING, UUID, Array


@message(api_key=76, kind="request", versions=(1, 1), flexible=0)
class ShareGroupHeartbeatRequest:
    group_id: str = field(STRING)
    member_id: str = field(STRING)
    member_epoch: int = field(INT32)
    rack_id: str | None = field(STRING, nullable_since=0, default=None)
    subscribed_topic_names: list[str] | None = field(Array(STRING), nullable_since=0, default=None)


@struct
class TopicPartitions:
    topic_id: bytes = field(UUID)
    partitions: list[int] = field(Array(INT32))


@struct
class Assignment:
    topic_partitions: list[TopicPartitions] = field(Array(TopicPartitions))


@message(api_key=76, kind="response", versions=(1, 1), flexible=0)
class ShareGroupHeartbeatResponse:
    throttle_time_ms: int = field(INT32)
    error_code: int = field(INT16)
    error_message: str | None = field(STRING, nullable_since=0, default=None)
    member_id: str | None = field(STRING, nullable_since=0, default=None)
    member_epoch: int = field(INT32)
    heartbeat_interval_ms: int = field(INT32)
    assignment: Assignment | None = field(Assignment, nullable_since=0, default=None)
