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
from kbroker.security.acls import AclOperation

if TYPE_CHECKING:
    from kbroker.broker import Broker
    from kbroker.pending import Pending
    from kbroker.requests.context import RequestContext


def handle(
    broker: Broker, request: OffsetDeleteRequest, context: RequestContext
) -> OffsetDeleteResponse | Pending[OffsetDeleteResponse]:
    groups = broker.resources(context).groups(request.group_id, AclOperation.DELETE)
    partitions = [TopicPartition(t.name, p.partition_index) for t in request.topics for p in t.partitions]

    def answer(results: DeleteResults) -> OffsetDeleteResponse:
        topics: dict[str, OffsetDeleteResponseTopic] = {}
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
