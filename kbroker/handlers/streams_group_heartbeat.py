"""StreamsGroupHeartbeat 0: a member of a streams group joins with its topology, stays, gives up and takes
tasks, leaves (KIP-1071). The internal topics that the topology needs are created on the way, as the caller.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from kbroker.coordinators.groups.errors import InvalidRequest, StreamsInvalidTopology
from kbroker.coordinators.groups.streams import topology as topologies
from kbroker.coordinators.groups.streams.configured_topology import Status as GroupStatus
from kbroker.coordinators.groups.streams.configured_topology import StatusCode
from kbroker.coordinators.groups.streams.member import Endpoint as MemberEndpoint
from kbroker.coordinators.groups.streams.requests import HeartbeatRequest, HeartbeatResult
from kbroker.coordinators.groups.streams.tasks import TaskId, by_subtopology
from kbroker.errors import describe
from kbroker.operations.internal_topics import create_internal_topics
from kbroker.pending import Pending, after, mapped
from kbroker.protocol.errors import ApiError
from kbroker.protocol.messages.streams_group_heartbeat import (
    Endpoint,
    EndpointToPartitions,
    Status,
    StreamsGroupHeartbeatRequest,
    StreamsGroupHeartbeatResponse,
    Subtopology,
    TaskIds,
    TopicInfo,
    TopicPartition,
    Topology,
)
from kbroker.requests.long_requests import Steps
from kbroker.security.acls import AclOperation
from kbroker.topics.creation import NewTopic
from kbroker.topics.names import INTERNAL_TOPICS, check_name

if TYPE_CHECKING:
    from kbroker.broker import Broker
    from kbroker.coordinators.groups.streams.endpoints import TopicPartitions
    from kbroker.coordinators.groups.streams.tasks import TaskIds as MemberTaskIds
    from kbroker.requests.context import RequestContext
    from kbroker.requests.resources import Resources

_DEFAULT_FACTOR = -1
_MOST_TOPICS = 20_000  # of a topology: they take some tens of milliseconds


def handle(
    broker: Broker, request: StreamsGroupHeartbeatRequest, context: RequestContext
) -> Steps[StreamsGroupHeartbeatResponse | Pending[StreamsGroupHeartbeatResponse]]:
    broker.features.require("streams.version", 1)
    resources = broker.resources(context)
    groups = resources.groups(request.group_id, AclOperation.READ)
    topology = None
    if request.topology is not None:
        yield from _check_size(request.topology)
        yield from _check_topics(resources, request.topology)
        topology = yield from _topology(request.topology)
    active = yield from _owned(request.active_tasks)
    standby = yield from _owned(request.standby_tasks)
    warmup = yield from _owned(request.warmup_tasks)
    endpoint, tags = request.user_endpoint, request.client_tags
    heartbeat = HeartbeatRequest(
        group_id=request.group_id,
        member_id=request.member_id,
        member_epoch=request.member_epoch,
        endpoint_information_epoch=request.endpoint_information_epoch,
        instance_id=request.instance_id,
        rack_id=request.rack_id,
        rebalance_timeout_ms=request.rebalance_timeout_ms,
        topology=topology,
        active=active,
        standby=standby,
        warmup=warmup,
        process_id=request.process_id,
        user_endpoint=None if endpoint is None else MemberEndpoint(endpoint.host, endpoint.port),
        client_tags=None if tags is None else {tag.key: tag.value for tag in tags},
        has_task_offsets=request.task_offsets is not None or request.task_end_offsets is not None,
        shutdown_application=request.shutdown_application,
        client_id=context.client_id or "",
        client_host=f"/{context.peer_host}",
    )
    result = groups.streams_groups.heartbeat(heartbeat, context.now_ms)
    if isinstance(result, Pending):
        return after(result, lambda result: _with_topics(resources, result))
    return _with_topics(resources, result)


def refuse(
    request: StreamsGroupHeartbeatRequest, context: RequestContext, error: Exception
) -> StreamsGroupHeartbeatResponse:
    code, message = describe(error)
    return StreamsGroupHeartbeatResponse(error_code=code, error_message=message)


# the topology


def _check_size(topology: Topology) -> Steps[None]:
    """How often it names topics."""
    number = 0
    for each in topology.subtopologies:
        number += 1 + len(each.source_topics) + len(each.repartition_sink_topics)
        number += len(each.repartition_source_topics) + len(each.state_changelog_topics)
        for group in each.copartition_groups:
            number += len(group.source_topics) + len(group.repartition_source_topics)
            yield None
        if number > _MOST_TOPICS:
            raise StreamsInvalidTopology(f"A topology has at most {_MOST_TOPICS} topics.")


def _check_topics(resources: Resources, topology: Topology) -> Steps[None]:
    names = {
        name
        for each in topology.subtopologies
        for name in (
            *each.source_topics,
            *each.repartition_sink_topics,
            *(topic.name for topic in each.repartition_source_topics),
            *(topic.name for topic in each.state_changelog_topics),
        )
    }
    for name in sorted(names):
        try:
            check_name(name)
        except ApiError as error:
            raise StreamsInvalidTopology(str(error)) from None
        if name in INTERNAL_TOPICS:
            raise StreamsInvalidTopology(f"The name '{name}' is reserved.")
        yield None
    for name in sorted(names) if resources.restricted else ():
        resources.check_topic(AclOperation.DESCRIBE, name)
        yield None


def _topology(asked: Topology) -> Steps[topologies.Topology]:
    found = []
    for subtopology in asked.subtopologies:
        found.append(_subtopology(subtopology))
        yield None
    return topologies.Topology(asked.epoch, topologies.by_id(found))


def _subtopology(asked: Subtopology) -> topologies.Subtopology:
    if asked.source_topic_regex:
        raise InvalidRequest("source topics are named: regular expressions do not go")
    repartitions = [topic.name for topic in asked.repartition_source_topics]
    return topologies.Subtopology(
        asked.subtopology_id,
        frozenset(asked.source_topics),
        {topic.name: _internal(topic) for topic in asked.repartition_source_topics},
        frozenset(asked.repartition_sink_topics),
        {topic.name: _internal(topic) for topic in asked.state_changelog_topics},
        frozenset(
            topologies.copartition_group(
                asked.source_topics, repartitions, group.source_topics, group.repartition_source_topics
            )
            for group in asked.copartition_groups
        ),
    )


def _internal(asked: TopicInfo) -> topologies.InternalTopic:
    configs = {config.key: config.value for config in asked.topic_configs}
    return topologies.InternalTopic(asked.name, asked.partitions, asked.replication_factor, configs)


# the answer


def _with_topics(
    resources: Resources, result: HeartbeatResult
) -> StreamsGroupHeartbeatResponse | Pending[StreamsGroupHeartbeatResponse]:
    """The answer, when the missing topics are made: the next heartbeat finds them."""
    if not result.to_create:
        return _response(result)
    topics = [
        NewTopic(topic.name, topic.partitions, topic.replication_factor or _DEFAULT_FACTOR, topic.configs)
        for topic in result.to_create
    ]

    def answer(problems: list[str]) -> StreamsGroupHeartbeatResponse:
        if problems:
            result.statuses = [_with_problems(status, problems) for status in result.statuses]
        return _response(result)

    return mapped(create_internal_topics(resources, topics), answer)


def _with_problems(status: GroupStatus, problems: Sequence[str]) -> GroupStatus:
    if status.code is not StatusCode.MISSING_INTERNAL_TOPICS:
        return status
    return status._replace(detail=f"{status.detail}; they could not be created: {'; '.join(problems)}")


def _response(result: HeartbeatResult) -> StreamsGroupHeartbeatResponse:
    response = StreamsGroupHeartbeatResponse(
        member_id=result.member_id,
        member_epoch=result.member_epoch,
        heartbeat_interval_ms=result.heartbeat_interval_ms,
        status=[Status(status.code, status.detail) for status in result.statuses],
        endpoint_information_epoch=result.endpoint_information_epoch,
    )
    if result.tasks is not None:
        response.active_tasks = _tasks(result.tasks.active)
        response.standby_tasks = _tasks(result.tasks.standby)
        response.warmup_tasks = _tasks(result.tasks.warmup)
    if result.partitions_by_endpoint is not None:
        response.partitions_by_user_endpoint = [
            EndpointToPartitions(Endpoint(*endpoint), _partitions(active), _partitions(standby))
            for endpoint, active, standby in result.partitions_by_endpoint
        ]
    return response


def _owned(tasks: list[TaskIds] | None) -> Steps[MemberTaskIds | None]:
    if tasks is None:
        return None
    found = set()
    for each in tasks:
        for partition in each.partitions:
            found.add(TaskId(each.subtopology_id, partition))
            yield None
    return frozenset(found)


def _tasks(tasks: frozenset[TaskId]) -> list[TaskIds]:
    return [TaskIds(subtopology, held) for subtopology, held in by_subtopology(tasks).items()]


def _partitions(found: TopicPartitions) -> list[TopicPartition]:
    return [TopicPartition(topic, partitions) for topic, partitions in found]
