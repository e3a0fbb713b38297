"""DescribeTopicPartitions 0: topics page by page (KIP-966), sorted by name.

A page ends at the limit of partitions and names where the next one begins.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kbroker.protocol.errors import ApiError, ErrorCode
from kbroker.protocol.messages.describe_topic_partitions import (
    Cursor,
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    DescribeTopicPartitionsResponsePartition,
    DescribeTopicPartitionsResponseTopic,
)
from kbroker.requests.long_requests import Steps
from kbroker.security.acls import AclOperation, AclResourceType
from kbroker.topics.names import INTERNAL_TOPICS, check_name

if TYPE_CHECKING:
    from kbroker.broker import Broker
    from kbroker.requests.context import RequestContext
    from kbroker.requests.resources import Resources
    from kbroker.topics.registry import Topic


def handle(
    broker: Broker, request: DescribeTopicPartitionsRequest, context: RequestContext
) -> Steps[DescribeTopicPartitionsResponse]:
    resources = broker.resources(context)
    asked = {topic.name for topic in request.topics}
    names = sorted(asked) if asked else resources.topic_names(AclOperation.DESCRIBE)
    first_partition = 0
    if request.cursor is not None:
        if request.cursor.partition_index < 0:
            raise ApiError(ErrorCode.INVALID_REQUEST)
        if request.topics and request.cursor.topic_name not in set(names):
            raise ApiError(ErrorCode.INVALID_REQUEST)
        names = [name for name in names if name >= request.cursor.topic_name]
        if names and names[0] == request.cursor.topic_name:
            first_partition = request.cursor.partition_index
    room = min(max(1, request.response_partition_limit), broker.settings["max.request.partition.size.limit"])
    response = DescribeTopicPartitionsResponse(next_cursor=None)
    for name in names:
        yield None
        if room <= 0:
            response.next_cursor = Cursor(name, 0)
            break
        try:
            topic = resources.topic(name, AclOperation.DESCRIBE)
        except ApiError as error:
            response.topics.append(_unknown(resources, name, error))
            continue
        last = min(topic.partitions, first_partition + room)
        response.topics.append(_page(resources, topic, first_partition, last, context))
        room -= last - first_partition
        if last < topic.partitions:
            response.next_cursor = Cursor(name, last)
            break
        first_partition = 0
    return response


def _unknown(resources: Resources, name: str, error: ApiError) -> DescribeTopicPartitionsResponseTopic:
    code = error.code
    if code is ErrorCode.TOPIC_AUTHORIZATION_FAILED:
        return DescribeTopicPartitionsResponseTopic(error_code=code, name=name)
    if code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
        try:
            check_name(name)
        except ApiError as invalid:
            code = invalid.code
    return DescribeTopicPartitionsResponseTopic(
        error_code=code,
        name=name,
        topic_authorized_operations=resources.authorized_operations(AclResourceType.TOPIC, name),
    )


def _page(
    resources: Resources, topic: Topic, first: int, last: int, context: RequestContext
) -> DescribeTopicPartitionsResponseTopic:
    cluster = resources.broker.cluster
    return DescribeTopicPartitionsResponseTopic(
        name=topic.name,
        topic_id=topic.topic_id,
        is_internal=topic.name in INTERNAL_TOPICS,
        partitions=[
            DescribeTopicPartitionsResponsePartition(
                partition_index=partition,
                leader_id=cluster.leader(topic, partition, context),
                leader_epoch=cluster.leader_epoch(topic),
                replica_nodes=cluster.replicas(topic, partition),
                isr_nodes=cluster.replicas(topic, partition),
                eligible_leader_replicas=[],
                last_known_elr=[],
                offline_replicas=[],
            )
            for partition in range(first, last)
        ],
        topic_authorized_operations=resources.authorized_operations(AclResourceType.TOPIC, topic.name),
    )
