"""What goes into a consumer group with a heartbeat and what comes out: plain values, whatever the version."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from kbroker.coordinators.groups.consumer_member import (
    LEAVE_GROUP_MEMBER_EPOCH,
    LEAVE_GROUP_STATIC_MEMBER_EPOCH,
    Owned,
    PartitionEpochs,
)
from kbroker.coordinators.groups.errors import InvalidRequest, UnsupportedAssignor


@dataclass(slots=True)
class HeartbeatRequest:
    """None, or -1 for the timeout: as in the last request that said it."""

    group_id: str
    member_id: str
    member_epoch: int
    instance_id: str | None = None
    rack_id: str | None = None
    rebalance_timeout_ms: int = -1
    subscribed_topic_names: Collection[str] | None = None
    subscribed_topic_regex: str | None = None
    server_assignor: str | None = None
    owned: Owned | None = None
    client_id: str = ""
    client_host: str = ""
    brings_member_id: bool = True
    """ConsumerGroupHeartbeat 1 and up: the client makes its member id."""

    @property
    def is_full(self) -> bool:
        """Whether it says everything, as a client does that does not know what the coordinator has heard."""
        subscribes = self.subscribed_topic_names is not None or self.subscribed_topic_regex is not None
        return self.rebalance_timeout_ms != -1 and subscribes and self.owned is not None


@dataclass(slots=True)
class HeartbeatResult:
    member_id: str
    member_epoch: int
    heartbeat_interval_ms: int = 0
    assignment: PartitionEpochs | None = None
    """None: as in the last answer."""


def validate_heartbeat(request: HeartbeatRequest, assignors: Collection[str]) -> None:
    epoch = request.member_epoch
    if (
        request.brings_member_id or epoch > 0 or epoch == LEAVE_GROUP_MEMBER_EPOCH
    ) and not request.member_id.strip():
        raise InvalidRequest("MemberId can't be empty.")
    if not request.group_id.strip():
        raise InvalidRequest("GroupId can't be empty.")
    if request.instance_id is not None and not request.instance_id.strip():
        raise InvalidRequest("InstanceId can't be empty.")
    if request.rack_id is not None and not request.rack_id.strip():
        raise InvalidRequest("RackId can't be empty.")
    if epoch == 0:
        if request.rebalance_timeout_ms == -1:
            raise InvalidRequest("RebalanceTimeoutMs must be provided in first request.")
        if request.owned is None or request.owned:
            raise InvalidRequest("TopicPartitions must be empty when (re-)joining.")
        if request.subscribed_topic_names is None and request.subscribed_topic_regex is None:
            raise InvalidRequest(
                "Either SubscribedTopicNames or SubscribedTopicRegex must be non-null when (re-)joining."
            )
    elif epoch == LEAVE_GROUP_STATIC_MEMBER_EPOCH:
        if request.instance_id is None:
            raise InvalidRequest("InstanceId can't be null.")
    elif epoch < LEAVE_GROUP_STATIC_MEMBER_EPOCH:
        raise InvalidRequest("MemberEpoch is invalid.")
    if request.server_assignor is not None and request.server_assignor not in assignors:
        raise UnsupportedAssignor(
            f"ServerAssignor {request.server_assignor} is not supported. "
            f"Supported assignors: {', '.join(assignors)}."
        )
