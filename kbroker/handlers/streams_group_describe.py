"""StreamsGroupDescribe 0: streams groups with their topology, their members' tasks and targets (KIP-1071)."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import TYPE_CHECKING

from kbroker.coordinators.groups.streams.tasks import NO_TASKS, TaskId, Tasks, by_subtopology
from kbroker.protocol.messages.streams_group_describe import (
    Assignment,
    DescribedGroup,
    Endpoint,
    KeyValue,
    Member,
    StreamsGroupDescribeRequest,
    StreamsGroupDescribeResponse,
    Subtopology,
    TaskIds,
    TopicInfo,
    Topology,
)
from kbroker.requests.described_groups import described_groups
from kbroker.requests.long_requests import lazily
from kbroker.security.acls import AclOperation

if TYPE_CHECKING:
    from kbroker.broker import Broker
    from kbroker.coordinators.groups.coordinator import GroupCoordinator
    from kbroker.coordinators.groups.streams import topology as topologies
    from kbroker.coordinators.groups.streams.group import StreamsGroup
    from kbroker.coordinators.groups.streams.member import StreamsMember
    from kbroker.requests.context import RequestContext
    from kbroker.requests.resources import Resources


def handle(
    broker: Broker, request: StreamsGroupDescribeRequest, context: RequestContext
) -> StreamsGroupDescribeResponse:
    resources = broker.resources(context)
    return StreamsGroupDescribeResponse(
        groups=described_groups(
            resources,
            request.group_ids,
            partial(_described, resources),
            DescribedGroup,
            feature="streams.version",
            with_authorized_operations=request.include_authorized_operations,
        )
    )


def _described(resources: Resources, groups: GroupCoordinator, group_id: str) -> DescribedGroup:
    group = groups.streams_groups.group(group_id)
    for topic in sorted(group.topics) if resources.restricted else ():
        resources.check_topic(AclOperation.DESCRIBE, topic)  # who may not see all is told of none
    return DescribedGroup(
        group_id=group_id,
        group_state=group.state,
        group_epoch=group.group_epoch,
        assignment_epoch=group.assignment_epoch,
        topology=_topology(group),
        members=lazily(list(group.members.values()), lambda member: _member(group, member)),
    )


def _topology(group: StreamsGroup) -> Topology:
    """With the widths of its internal topics, once they are right."""
    ready = group.configured is not None and group.configured.is_ready
    decided = group.configured.subtopologies if group.configured is not None and ready else None
    subtopologies = decided if decided is not None else group.topology.subtopologies
    return Topology(group.topology.epoch, [_subtopology(each) for _, each in sorted(subtopologies.items())])


def _subtopology(subtopology: topologies.Subtopology) -> Subtopology:
    return Subtopology(
        subtopology_id=subtopology.subtopology_id,
        source_topics=sorted(subtopology.source_topics),
        repartition_sink_topics=sorted(subtopology.repartition_sink_topics),
        state_changelog_topics=_topics(subtopology.state_changelog_topics.values()),
        repartition_source_topics=_topics(subtopology.repartition_source_topics.values()),
    )


def _topics(topics: Iterable[topologies.InternalTopic]) -> list[TopicInfo]:
    return [
        TopicInfo(
            topic.name,
            topic.partitions,
            topic.replication_factor,
            [KeyValue(key, value) for key, value in topic.configs.items()],
        )
        for topic in sorted(topics, key=lambda topic: topic.name)
    ]


def _member(group: StreamsGroup, member: StreamsMember) -> Member:
    endpoint = member.user_endpoint
    return Member(
        member_id=member.member_id,
        member_epoch=member.member_epoch,
        rack_id=member.rack_id,
        client_id=member.client_id,
        client_host=member.client_host,
        topology_epoch=member.topology_epoch,
        process_id=member.process_id,
        user_endpoint=None if endpoint is None else Endpoint(*endpoint),
        client_tags=[KeyValue(key, value) for key, value in member.client_tags.items()],
        assignment=_assignment(member.assigned),
        target_assignment=_assignment(group.target.get(member.member_id, NO_TASKS)),
    )


def _assignment(tasks: Tasks) -> Assignment:
    return Assignment(_tasks(tasks.active), _tasks(tasks.standby), _tasks(tasks.warmup))


def _tasks(tasks: Iterable[TaskId]) -> list[TaskIds]:
    return [TaskIds(subtopology, held) for subtopology, held in by_subtopology(tasks).items()]
