"""ShareGroupDescribe 1: share groups with their members' epochs and assignments (KIP-932)."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from kbroker.coordinators.groups.share.member import ShareGroupMember
from kbroker.protocol.messages.share_group_describe import (
    Assignment,
    DescribedGroup,
    Member,
    ShareGroupDescribeRequest,
    ShareGroupDescribeResponse,
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


def handle(
    broker: Broker, request: ShareGroupDescribeRequest, context: RequestContext
) -> ShareGroupDescribeResponse:
    resources = broker.resources(context)
    return ShareGroupDescribeResponse(
        groups=described_groups(
            resources,
            request.group_ids,
            partial(_described, resources),
            DescribedGroup,
            feature="share.version",
            with_authorized_operations=request.include_authorized_operations,
        )
    )


def _described(resources: Resources, groups: GroupCoordinator, group_id: str) -> DescribedGroup:
    group = groups.share_groups.group(group_id)
    if resources.restricted:
        resources.check_visible({topic for member in group.members.values() for topic in member.assigned})
    return DescribedGroup(
        group_id=group_id,
        group_state=group.state,
        group_epoch=group.group_epoch,
        assignment_epoch=group.assignment_epoch,
        assignor_name=group.assignor_name,
        members=lazily(list(group.members.values()), lambda member: _member(member, resources)),
    )


def _member(member: ShareGroupMember, resources: Resources) -> Member:
    return Member(
        member_id=member.member_id,
        rack_id=member.rack_id,
        member_epoch=member.member_epoch,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=sorted(member.subscribed_topic_names),
        assignment=Assignment(
            [
                TopicPartitions(topic_id, topic.name, sorted(partitions))
                for topic_id, partitions in member.assigned.items()
                if (topic := resources.find_topic(topic_id, AclOperation.DESCRIBE)) is not None
            ]
        ),
    )
