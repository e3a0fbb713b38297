"""What goes into a share group with a heartbeat and what comes out: plain values."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from kbroker.coordinators.groups.assignors.spec import TopicPartitions
from kbroker.coordinators.groups.errors import InvalidRequest

LEAVE_GROUP_MEMBER_EPOCH = -1
MAX_MEMBER_ID_LENGTH = 36
"""That of a UUID as text."""


@dataclass(slots=True)
class ShareHeartbeatRequest:
    """None: as in the last request that said it."""

    group_id: str
    member_id: str
    member_epoch: int
    rack_id: str | None = None
    subscribed_topic_names: Collection[str] | None = None
    client_id: str = ""
    client_host: str = ""


@dataclass(slots=True)
class ShareHeartbeatResult:
    member_id: str
    member_epoch: int
    heartbeat_interval_ms: int = 0
    assignment: TopicPartitions | None = None
    """None: as in the last answer."""


def validate_heartbeat(request: ShareHeartbeatRequest) -> None:
    if not request.member_id.strip():
        raise InvalidRequest("a MemberId is needed")
    if len(request.member_id) > MAX_MEMBER_ID_LENGTH:
        raise InvalidRequest(f"a MemberId has at most {MAX_MEMBER_ID_LENGTH} characters")
    if not request.group_id.strip():
        raise InvalidRequest("a GroupId is needed")
    if request.rack_id is not None and not request.rack_id.strip():
        raise InvalidRequest("a RackId needs characters")
    if request.member_epoch < LEAVE_GROUP_MEMBER_EPOCH:
        raise InvalidRequest("there is no such MemberEpoch")
    if request.member_epoch == 0 and not request.subscribed_topic_names:
        raise InvalidRequest("who joins names its topics: SubscribedTopicNames")
