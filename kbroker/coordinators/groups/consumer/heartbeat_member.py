"""The member that a ConsumerGroupHeartbeat speaks of: whether it may, and what the request says of it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from kbroker.coordinators.groups.consumer.group import ConsumerGroup
from kbroker.coordinators.groups.consumer.member import ConsumerGroupMember
from kbroker.coordinators.groups.consumer.requests import HeartbeatRequest
from kbroker.coordinators.groups.errors import UnreleasedInstanceId
from kbroker.coordinators.groups.member_epochs import check_member_epoch
from kbroker.coordinators.groups.modern_member import with_news


def find_or_make_member(
    group: ConsumerGroup, member_id: str, request: HeartbeatRequest
) -> tuple[ConsumerGroupMember, ConsumerGroupMember | None]:
    """The member as it stands, and the static member in whose place it comes, if any."""
    joins = request.member_epoch == 0
    if request.instance_id is None:
        if joins and member_id not in group.members:
            return ConsumerGroupMember(member_id), None
        member = group.member(member_id)
    elif joins:
        existing = group.static_member(request.instance_id)
        if existing is None:
            return group.members.get(member_id, ConsumerGroupMember(member_id)), None
        if not existing.uses_classic_protocol and not existing.has_left_for_a_while:
            raise UnreleasedInstanceId(
                f"the instance id {request.instance_id} still belongs to {existing.member_id}"
            )
        return existing.replaced_by(member_id), existing
    else:
        member = group.known_static_member(request.instance_id, member_id)
    check_member_epoch(
        member,
        request.member_epoch,
        lambda: request.owned is not None and member.holds_only(request.owned),
    )
    return member, None


def brought_up_to_date(member: ConsumerGroupMember, request: HeartbeatRequest) -> ConsumerGroupMember:
    """The member with what the request says of it; the same object if that is nothing new."""
    said: dict[str, Any] = {
        "instance_id": request.instance_id,
        "rack_id": request.rack_id,
        "rebalance_timeout_ms": None if request.rebalance_timeout_ms == -1 else request.rebalance_timeout_ms,
        "server_assignor": request.server_assignor,
        "subscribed_topic_regex": request.subscribed_topic_regex,
        "client_id": request.client_id,
        "client_host": request.client_host,
    }
    if request.subscribed_topic_names is not None:
        said["subscribed_topic_names"] = frozenset(request.subscribed_topic_names)
    updated = with_news(member, said)
    return updated if updated.classic is None else replace(updated, classic=None)
