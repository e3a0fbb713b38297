"""ConsumerGroupDescribe, API key 69."""

from __future__ import annotations

from kbroker.protocol.message import field, message, struct
from kbroker.protocol.types import BOOL, INT8, INT16, INT32, STRING, UUID, Array


@message(api_key=69, kind="request", versions=(0, 1), flexible=0)
class ConsumerGroupDescribeRequest:
    group_ids: list[str] = field(Array(STRING))
    include_authorized_operations: bool = field(BOOL)


@struct
class TopicPartitions:
    topic_id: bytes = field(UUID)
    topic_name: str = field(STRING)
    partitions: list[int] = field(Array(INT32))


@struct
class Assignment:
    topic_partitions: list[TopicPartitions] = field(Array(TopicPartitions))


@struct
class Member:
    member_id: str = field(STRING)
    instance_id: str | None = field(STRING, nullable_since=0, default=None)
    rack_id: str | None = field(STRING, nullable_since=0, default=None)
    member_epoch: int = field(INT32)
    client_id: str = field(STRING)
    client_host: str = field(STRING)
    subscribed_topic_names: list[str] = field(Array(STRING))
    subscribed_topic_regex: str | None = field(STRING, nullable_since=0, default=None)
    assignment: Assignment = field(Assignment)
    target_assignment: Assignment = field(Assignment)
    member_type: int = field(INT8, since=1, default=-1, ignorable=True)


@struct
class DescribedGroup:
    error_code: int = field(INT16)
    error_message: str | None = field(STRING, nullable_since=0, default=None)
    group_id: str = field(STRING)
    group_state: str = field(STRING)
    group_epoch: int = field(INT32)
    assignment_epoch: int = field(INT32)
    assignor_name: str = field(STRING)
    members: list[Member] = field(Array(Member))
    authorized_operations: int = field(INT32, default=-2147483648)


@message(api_key=69, kind="response", versions=(0, 1), flexible=0)
class ConsumerGroupDescribeResponse:
    throttle_time_ms: int = field(INT32)
    groups: list[DescribedGroup] = field(Array(DescribedGroup))
