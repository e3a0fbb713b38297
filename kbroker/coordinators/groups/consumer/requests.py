"""What goes into a consumer group with a heartbeat and what comes out: plain values, whatever the version."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass

from kbroker.coordinators.groups.consumer.member import (
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
    may_see: Callable[[str], bool] | None = None
    """Of a topic's name: whether a regular expression of this client may find it. None: it finds them all."""

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
        raise InvalidRequest("a MemberId is needed")
    if not request.group_id.strip():
        raise InvalidRequest("a GroupId is needed")
    if request.instance_id is not None and not request.instance_id.strip():
        raise InvalidRequest("an InstanceId needs characters")
    if request.rack_id is not None and not request.rack_id.strip():
        raise InvalidRequest("a RackId needs characters")
    if epoch == 0:
        if request.rebalance_timeout_ms == -1:
            raise InvalidRequest("who joins names its RebalanceTimeoutMs")
        if request.owned is None or request.owned:
            raise InvalidRequest("who joins owns no TopicPartitions: send none")
        if request.subscribed_topic_names is None and request.subscribed_topic_regex is None:
            raise InvalidRequest("who joins names its topics: SubscribedTopicNames or SubscribedTopicRegex")
    elif epoch == LEAVE_GROUP_STATIC_MEMBER_EPOCH:
        if request.instance_id is None:
            raise InvalidRequest("only a member with an InstanceId leaves for a while")
    elif epoch < LEAVE_GROUP_STATIC_MEMBER_EPOCH:
        raise InvalidRequest("there is no such MemberEpoch")
    if request.server_assignor is not None and request.server_assignor not in assignors:
        raise UnsupportedAssignor(
            f"no ServerAssignor {request.server_assignor} here, but {', '.join(assignors)}"
        )
