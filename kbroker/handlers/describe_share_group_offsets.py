"""DescribeShareGroupOffsets 0–1: where share groups are in their partitions (KIP-932).

Version 1 adds the lag (KIP-1226). Without topics it is asked for all partitions that the group has. Of what
is not known, be it the partition, the topic or the group, the start offset is -1; no error is told. A group
of which all partitions are asked for several times is looked at once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kbroker.errors import describe
from kbroker.operations.share_offsets import SharePosition, position
from kbroker.pending import Pending, mapped, wait
from kbroker.protocol.errors import ApiError
from kbroker.protocol.messages.describe_share_group_offsets import (
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsRequestGroup,
    DescribeShareGroupOffsetsRequestTopic,
    DescribeShareGroupOffsetsResponse,
    DescribeShareGroupOffsetsResponseGroup,
    DescribeShareGroupOffsetsResponsePartition,
    DescribeShareGroupOffsetsResponseTopic,
)
from kbroker.security.acls import AclOperation

if TYPE_CHECKING:
    from kbroker.broker import Broker
    from kbroker.coordinators.shares.states import ShareStates
    from kbroker.requests.context import RequestContext
    from kbroker.requests.long_requests import Steps
    from kbroker.requests.resources import Resources
    from kbroker.topics.registry import Topic

_NO_TOPIC_ID = bytes(16)


def handle(
    broker: Broker, request: DescribeShareGroupOffsetsRequest, context: RequestContext
) -> Steps[DescribeShareGroupOffsetsResponse]:
    resources = broker.resources(context)
    groups: list[DescribeShareGroupOffsetsResponseGroup] = []
    whole: dict[str, DescribeShareGroupOffsetsResponseGroup] = {}
    for asked in request.groups:
        yield None
        group = whole.get(asked.group_id) if asked.topics is None else None
        if group is None:
            group = yield from _group(resources, asked)
            if asked.topics is None:
                whole[asked.group_id] = group
        groups.append(group)
    return DescribeShareGroupOffsetsResponse(groups=groups)


def _group(
    resources: Resources, asked: DescribeShareGroupOffsetsRequestGroup
) -> Steps[DescribeShareGroupOffsetsResponseGroup]:
    answer = DescribeShareGroupOffsetsResponseGroup(asked.group_id)
    try:
        resources.broker.features.require("share.version", 1)
        states = resources.share_states(asked.group_id, AclOperation.DESCRIBE)
    except ApiError as error:
        answer.error_code, answer.error_message = describe(error)
        return answer
    topics = asked.topics
    if topics is None:
        topics = yield from _all_topics(resources, states, asked.group_id)
    for topic in topics:
        yield None
        found = resources.find_topic(topic.topic_name, AclOperation.DESCRIBE)
        described = DescribeShareGroupOffsetsResponseTopic(
            topic.topic_name, _NO_TOPIC_ID if found is None else found.topic_id
        )
        refused = _refusal(resources, topic.topic_name)
        for partition in topic.partitions:
            if refused is not None:
                described.partitions.append(_failed(partition, refused))
            else:
                part = _partition(resources, states, asked.group_id, found, partition)
                described.partitions.append((yield from wait(part)) if isinstance(part, Pending) else part)
            yield None
        answer.topics.append(described)
    return answer


def _refusal(resources: Resources, topic: str) -> ApiError | None:
    try:
        resources.check_topic(AclOperation.DESCRIBE, topic)
    except ApiError as error:
        return error
    return None


def _all_topics(
    resources: Resources, states: ShareStates, group_id: str
) -> Steps[list[DescribeShareGroupOffsetsRequestTopic]]:
    """Those that the caller may see."""
    topics: dict[bytes, DescribeShareGroupOffsetsRequestTopic] = {}
    for topic_id, partition in sorted(states.initialized(group_id)):
        topic = resources.find_topic(topic_id, AclOperation.DESCRIBE)
        if topic is not None:
            asked = topics.setdefault(topic_id, DescribeShareGroupOffsetsRequestTopic(topic.name))
            asked.partitions.append(partition)
        yield None
    return list(topics.values())


def _partition(
    resources: Resources, states: ShareStates, group_id: str, topic: Topic | None, partition: int
) -> DescribeShareGroupOffsetsResponsePartition | Pending[DescribeShareGroupOffsetsResponsePartition]:
    if topic is None:
        return _described(partition, SharePosition())
    try:
        found = position(resources, states, group_id, topic, partition)
    except Exception as error:
        return _failed(partition, error)
    return mapped(found, lambda found: _described(partition, found), lambda error: _failed(partition, error))


def _described(partition: int, found: SharePosition) -> DescribeShareGroupOffsetsResponsePartition:
    return DescribeShareGroupOffsetsResponsePartition(
        partition, found.start_offset, found.leader_epoch, found.lag
    )


def _failed(partition: int, error: Exception) -> DescribeShareGroupOffsetsResponsePartition:
    code, message = describe(error)
    return DescribeShareGroupOffsetsResponsePartition(
        partition, SharePosition().start_offset, 0, error_code=code, error_message=message
    )
