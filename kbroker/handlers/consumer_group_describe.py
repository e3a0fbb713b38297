"""ConsumerGroupDescribe 0–1: consumer groups with their members' epochs, assignments and targets (KIP-848).
From version 1 it says which protocol each member uses (KIP-1099).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from kbroker.coordinators.groups.consumer.group import ConsumerGroup
from kbroker.coordinators.groups.consumer.member import ConsumerGroupMember
from kbroker.coordinators.groups.errors import GroupError, InvalidGroupId
from kbroker.errors import describe
from kbroker.protocol.errors import ApiError
from kbroker.protocol.messages.consumer_group_describe import (
    Assignment,
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    DescribedGroup,
    Member,
    TopicPartitions,
)
from kbroker.requests.long_requests import lazily
from kbroker.security.acls import AclOperation, AclResourceType

if TYPE_CHECKING:
    from kbroker.broker import Broker
    from kbroker.requests.context import RequestContext
    from kbroker.requests.resources import Resources

_CLASSIC, _CONSUMER = 0, 1


def handle(
    broker: Broker, request: ConsumerGroupDescribeRequest, context: RequestContext
) -> ConsumerGroupDescribeResponse:
    resources = broker.resources(context)

    def described(group_id: str) -> DescribedGroup:
        group = _described(resources, group_id)
        if request.include_authorized_operations and not group.error_code:
            group.authorized_operations = resources.authorized_operations(AclResourceType.GROUP, group_id)
        return group

    return ConsumerGroupDescribeResponse(groups=lazily(list(dict.fromkeys(request.group_ids)), described))


def _described(resources: Resources, group_id: str) -> DescribedGroup:
    try:
        resources.broker.features.require("group.version", 1)
        if not group_id:
            raise InvalidGroupId
        consumer_groups = resources.groups(group_id, AclOperation.DESCRIBE).consumer_groups
        group = consumer_groups.group(group_id)
        if resources.restricted:
            resources.check_visible(_topic_ids(group))
    except (ApiError, GroupError) as error:
        code, message = describe(error)
        return DescribedGroup(group_id=group_id, error_code=code, error_message=message)
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
