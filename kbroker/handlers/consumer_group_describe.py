"""ConsumerGroupDescribe 0–1: consumer groups with their members' epochs, assignments and targets (KIP-848).
From version 1 it says which protocol each member uses (KIP-1099).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING

from kbroker.coordinators.groups.consumer.group import ConsumerGroup
from kbroker.coordinators.groups.consumer.member import ConsumerGroupMember
from kbroker.protocol.messages.consumer_group_describe import (
    Assignment,
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    DescribedGroup,
    Member,
    TopicPartitions,
)
from kbroker.requests.described_groups import described_groups
from kbroker.requests.long_requests import lazily
from kbroker.security.acls import AclOperation

if TYPE_CHECKING:
    from kbroker.broker import Broker
    from kbroker.coordinators.groups.coordinator import GroupCoordinator
    from kbroker.requests.context import RequestContext
    from kbroker.requests.resources import Resources

_CLASSIC, _CONSUMER = 0, 1


def handle(
    broker: Broker, request: ConsumerGroupDescribeRequest, context: RequestContext
) -> ConsumerGroupDescribeResponse:
    resources = broker.resources(context)
    return ConsumerGroupDescribeResponse(
        groups=described_groups(
            resources,
            list(dict.fromkeys(request.group_ids)),
            partial(_described, resources),
            DescribedGroup,
            feature="group.version",
            with_authorized_operations=request.include_authorized_operations,
        )
    )


def _described(resources: Resources, groups: GroupCoordinator, group_id: str) -> DescribedGroup:
    consumer_groups = groups.consumer_groups
    group = consumer_groups.group(group_id)
    if resources.restricted:
        resources.check_visible(_topic_ids(group))
    return DescribedGroup(
        group_id=group_id,
        group_state=group.state,
        group_epoch=group.group_epoch,
        assignment_epoch=group.assignment_epoch,
        assignor_name=consumer_groups.assignor_of(group),
        members=lazily(list(group.members.values()), lambda member: _member(group, member, resources)),
    )


def _topic_ids(group: ConsumerGroup) -> set[bytes]:
    topic_ids: set[bytes] = set()
    for member in group.members.values():
        target = group.target.get(member.member_id, {})
        topic_ids.update(member.assigned, member.pending_revocation, target)
    return topic_ids


def _member(group: ConsumerGroup, member: ConsumerGroupMember, resources: Resources) -> Member:
    # What it still has to give up is the member's own until it has.
    held: dict[bytes, set[int]] = {}
    for partitions_of in (member.assigned, member.pending_revocation):
        for topic_id, partitions in partitions_of.items():
            held.setdefault(topic_id, set()).update(partitions)
    return Member(
        member_id=member.member_id,
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        member_epoch=member.member_epoch,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=sorted(member.subscribed_topic_names),
        subscribed_topic_regex=member.subscribed_topic_regex,
        assignment=_assignment(held, resources),
        target_assignment=_assignment(group.target.get(member.member_id, {}), resources),
        member_type=_CLASSIC if member.uses_classic_protocol else _CONSUMER,
    )


def _assignment(held: Mapping[bytes, Iterable[int]], resources: Resources) -> Assignment:
    return Assignment(
        [
            TopicPartitions(topic_id, topic.name, sorted(partitions))
            for topic_id, partitions in held.items()
            if (topic := resources.find_topic(topic_id, AclOperation.DESCRIBE)) is not None
        ]
    )
