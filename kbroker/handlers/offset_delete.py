"""OffsetDelete 0: forget a group's offsets of topics that it does not read (KIP-496)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kbroker.coordinators.groups.offsets.manager import DeleteResults
from kbroker.coordinators.groups.store import TopicPartition
from kbroker.errors import describe
from kbroker.pending import mapped
from kbroker.protocol.errors import ErrorCode
from kbroker.protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)
from kbroker.requests.long_requests import Steps
from kbroker.security.acls import AclOperation

if TYPE_CHECKING:
    from kbroker.broker import Broker
    from kbroker.pending import Pending
    from kbroker.requests.context import RequestContext


def handle(
    broker: Broker, request: OffsetDeleteRequest, context: RequestContext
) -> Steps[OffsetDeleteResponse | Pending[OffsetDeleteResponse]]:
    resources = broker.resources(context)
    groups = resources.groups(request.group_id, AclOperation.DELETE)
    partitions: list[TopicPartition] = []
    refused: list[TopicPartition] = []
    for asked in request.topics:
        found = partitions if resources.may_topic(AclOperation.READ, asked.name) else refused
        for partition in asked.partitions:
            found.append(TopicPartition(asked.name, partition.partition_index))
            yield None
        yield None

    def answer(results: DeleteResults) -> OffsetDeleteResponse:
        topics: dict[str, OffsetDeleteResponseTopic] = {}
        for name, partition in refused:
            topics.setdefault(name, OffsetDeleteResponseTopic(name)).partitions.append(
                OffsetDeleteResponsePartition(partition, ErrorCode.TOPIC_AUTHORIZATION_FAILED)
            )
        for (name, partition), error in results.items():
            topic = topics.setdefault(name, OffsetDeleteResponseTopic(name))
            code = ErrorCode.NONE if error is None else describe(error)[0]
            topic.partitions.append(OffsetDeleteResponsePartition(partition, code))
        return OffsetDeleteResponse(topics=list(topics.values()))

    return mapped(groups.offsets.delete(request.group_id, partitions), answer)


def refuse(
    request: OffsetDeleteRequest, context: RequestContext, error: BaseException
) -> OffsetDeleteResponse:
    return OffsetDeleteResponse(error_code=describe(error)[0])
