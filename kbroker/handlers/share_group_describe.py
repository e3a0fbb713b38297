"""ShareGroupDescribe 1: share groups with their members' epochs and assignments (KIP-932)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kbroker.coordinators.groups.errors import GroupError, InvalidGroupId
from kbroker.coordinators.groups.share.member import ShareGroupMember
from kbroker.errors import describe
from kbroker.protocol.errors import ApiError
from kbroker.protocol.messages.share_group_describe import (
    Assignment,
    DescribedGroup,
    Member,
    ShareGroupDescribeRequest,
    ShareGroupDescribeResponse,
    TopicPartitions,
)
from kbroker.requests.long_requests import lazily
from kbroker.security.acls import AclOperation, AclResourceType

if TYPE_CHECKING:
    from kbroker.broker import Broker
    from kbroker.requests.context import RequestContext
    from kbroker.requests.resources import Resources


def handle(
    broker: Broker, request: ShareGroupDescribeRequest, context: RequestContext
) -> ShareGroupDescribeResponse:
    resources = broker.resources(context)

    def described(group_id: str) -> DescribedGroup:
        group = _described(resources, group_id)
        if request.include_authorized_operations and not group.error_code:
            group.authorized_operations = resources.authorized_operations(AclResourceType.GROUP, group_id)
        return group

    return ShareGroupDescribeResponse(groups=lazily(request.group_ids, described))


def _described(resources: Resources, group_id: str) -> DescribedGroup:
    try:
        resources.broker.features.require("share.version", 1)
        if not group_id:
            raise InvalidGroupId
        group = resources.groups(group_id, AclOperation.DESCRIBE).share_groups.group(group_id)
        if resources.restricted:
            resources.check_visible({topic for member in group.members.values() for topic in member.assigned})
    except (ApiError, GroupError) as error:
        code, message = describe(error)
        return DescribedGroup(group_id=group_id, error_code=code, error_message=message)
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
