"""Groups of every type: listed, described with their members, deleted.

A member's assignment names topics. Who may not see all that a group reads is told of none of it, as in
Kafka's descriptions of consumer groups.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from kbroker.coordinators.groups.classic.group import ClassicGroup
from kbroker.coordinators.groups.consumer.group import ConsumerGroup
from kbroker.coordinators.groups.coordinator import SHARE, STREAMS
from kbroker.coordinators.groups.errors import GroupIdNotFound
from kbroker.coordinators.groups.store import TopicPartition
from kbroker.operations.auditing import audited
from kbroker.pending import Pending
from kbroker.protocol.consumer_protocol import PROTOCOL_TYPE, read_assignment, read_subscription
from kbroker.protocol.types import ProtocolError
from kbroker.requests.long_requests import Steps
from kbroker.security.acls import AclOperation, AclResourceType

if TYPE_CHECKING:
    from kbroker.coordinators.groups.classic.protocol import MemberDescription
    from kbroker.coordinators.groups.coordinator import GroupCoordinator, ListedGroup
    from kbroker.coordinators.groups.group import Group
    from kbroker.requests.resources import Resources

_CLASSIC = "classic"


class DescribedMember(NamedTuple):
    member_id: str
    instance_id: str | None
    client_id: str
    client_host: str
    protocol: str
    """By which it takes part: classic, consumer, share or streams."""
    epoch: int | None
    """None for a classic one: its generation is the group's."""
    topics: tuple[str, ...]
    """What it subscribes to by name, as far as that can be read."""
    pattern: str
    assignment: tuple[TopicPartition, ...]


@dataclass(slots=True)
class DescribedGroup:
    group_id: str
    type: str
    state: str
    protocol_type: str
    assignor: str | None
    """What decides who reads what: of a classic group the protocol that its members chose."""
    epoch: int | None
    members: list[DescribedMember] = field(default_factory=list)


class GroupPage(NamedTuple):
    groups: list[ListedGroup]
    """Sorted by id."""
    more: bool


def list_groups(
    resources: Resources,
    *,
    limit: int,
    states: Collection[str] = (),
    types: Collection[str] = (),
    prefix: str = "",
    after: str = "",
) -> GroupPage:
    """The first groups behind ``after`` that the caller may describe."""
    found = sorted(
        group
        for group in resources.list_groups(states, types)
        if group.group_id > after and group.group_id.startswith(prefix)
    )
    return GroupPage(found[:limit], len(found) > limit)


def find_group(resources: Resources, group_id: str, operation: AclOperation) -> Group:
    """Raises GroupIdNotFound."""
    group = resources.groups(group_id, operation).groups.get(group_id)
    if group is None:
        raise GroupIdNotFound(f"There is no group {group_id}.")
    return group


def describe_group(resources: Resources, group_id: str) -> Steps[DescribedGroup]:
    """The group and all its members."""
    groups = resources.groups(group_id, AclOperation.DESCRIBE)
    group = find_group(resources, group_id, AclOperation.DESCRIBE)
    described = DescribedGroup(group_id, group.type, str(group.state), group.protocol_type or "", None, None)
    if isinstance(group, ClassicGroup):
        members = _classic(group, described)
    elif isinstance(group, ConsumerGroup):
        members = _consumer(resources, groups, group, described)
    elif group.type == SHARE:
        members = _share(resources, groups, group_id, described)
    elif group.type == STREAMS:
        members = _streams(resources, groups, group_id, described)
    else:
        raise AssertionError(f"a group of type {group.type}")
    for member in members:
        described.members.append(member)
        yield None
    if resources.restricted:
        for topic in {at.topic for member in described.members for at in member.assignment}:
            resources.check_topic(AclOperation.DESCRIBE, topic)
    return described


def delete_group(resources: Resources, group_id: str, *, now_ms: int) -> Pending[None] | None:
    """With its offsets. Only a group without members."""

    def delete() -> Pending[None]:
        # A result of its own: the coordinator waits for the same, and who goes away must not abandon it.
        result: Pending[None] = Pending()
        groups = resources.groups(group_id, AclOperation.DELETE)
        groups.delete_group(group_id, now_ms).then(result.follow)
        return result

    return audited(resources, AclResourceType.GROUP.name, group_id, delete, {"deleted": True})


# by type


def _classic(group: ClassicGroup, described: DescribedGroup) -> Iterator[DescribedMember]:
    description = group.describe()
    described.assignor = description.protocol_name or None
    described.epoch = group.generation_id
    reads_topics = description.protocol_type == PROTOCOL_TYPE
    for member in description.members:
        topics, assignment = _embedded(member) if reads_topics else ((), ())
        yield DescribedMember(
            member.member_id,
            member.group_instance_id,
            member.client_id,
            member.client_host,
            _CLASSIC,
            None,
            topics,
            "",
            assignment,
        )


def _embedded(member: MemberDescription) -> tuple[tuple[str, ...], tuple[TopicPartition, ...]]:
    """What clients told each other, as far as it can be read."""
    topics: tuple[str, ...] = ()
    try:
        if member.metadata:
            topics = tuple(sorted(read_subscription(member.metadata).topics))
        if member.assignment:
            assigned = read_assignment(member.assignment).assigned_partitions
            return topics, _sorted((topic.topic, each) for topic in assigned for each in topic.partitions)
    except ProtocolError:
        pass
    return topics, ()


def _consumer(
    resources: Resources, groups: GroupCoordinator, group: ConsumerGroup, described: DescribedGroup
) -> Iterator[DescribedMember]:
    described.assignor = groups.consumer_groups.assignor_of(group)
    described.epoch = group.group_epoch
    for member in list(group.members.values()):
        held: dict[bytes, set[int]] = {}
        for partitions_of in (member.assigned, member.pending_revocation):
            for topic_id, partitions in partitions_of.items():
                held.setdefault(topic_id, set()).update(partitions)
        protocol = _CLASSIC if member.uses_classic_protocol else group.type
        yield _modern(resources, member, protocol, held, member.instance_id)


def _share(
    resources: Resources, groups: GroupCoordinator, group_id: str, described: DescribedGroup
) -> Iterator[DescribedMember]:
    group = groups.share_groups.group(group_id)
    described.assignor, described.epoch = group.assignor_name, group.group_epoch
    for member in list(group.members.values()):
        yield _modern(resources, member, group.type, member.assigned, member.instance_id)


def _modern(
    resources: Resources,
    member: Any,
    protocol: str,
    held: Mapping[bytes, Iterable[int]],
    instance_id: str | None,
) -> DescribedMember:
    named = (
        (topic.name, partition)
        for topic_id, partitions in held.items()
        if (topic := resources.find_topic(topic_id, AclOperation.DESCRIBE)) is not None
        for partition in partitions
    )
    return DescribedMember(
        member.member_id,
        instance_id,
        member.client_id,
        member.client_host,
        protocol,
        member.member_epoch,
        tuple(sorted(member.subscribed_topic_names)),
        member.subscribed_topic_regex,
        _sorted(named),
    )


def _streams(
    resources: Resources, groups: GroupCoordinator, group_id: str, described: DescribedGroup
) -> Iterator[DescribedMember]:
    group = groups.streams_groups.group(group_id)
    described.epoch = group.group_epoch
    sources = {
        each.subtopology_id: sorted({*each.source_topics, *each.repartition_source_topics})
        for each in group.topology.subtopologies.values()
    }
    for member in list(group.members.values()):
        # A task reads one partition of each source that has it.
        assigned = (
            (name, task.partition)
            for task in member.assigned.active
            for name in sources.get(task.subtopology_id, ())
            if (topic := resources.find_topic(name, AclOperation.DESCRIBE)) is not None
            and task.partition < topic.partitions
        )
        topics = tuple(sorted({name for names in sources.values() for name in names}))
        yield DescribedMember(
            member.member_id,
            None,
            member.client_id,
            member.client_host,
            group.type,
            member.member_epoch,
            topics,
            "",
            _sorted(assigned),
        )


def _sorted(partitions: Iterable[tuple[str, int]]) -> tuple[TopicPartition, ...]:
    return tuple(sorted(TopicPartition(*each) for each in partitions))
