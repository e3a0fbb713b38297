"""ListPartitionReassignments 0: moves of partitions between brokers (KIP-455). One broker has none."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kbroker.errors import describe
from kbroker.protocol.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
    OngoingPartitionReassignment,
    OngoingTopicReassignment,
)
from kbroker.requests.long_requests import lazily
from kbroker.security.acls import AclOperation

if TYPE_CHECKING:
    from kbroker.broker import Broker
    from kbroker.requests.context import RequestContext


def handle(
    broker: Broker, request: ListPartitionReassignmentsRequest, context: RequestContext
) -> ListPartitionReassignmentsResponse:
    broker.resources(context).check_cluster(AclOperation.DESCRIBE)
    return ListPartitionReassignmentsResponse(error_message=None)


def refuse(
    request: ListPartitionReassignmentsRequest, context: RequestContext, error: BaseException
) -> ListPartitionReassignmentsResponse:
    """What was asked for comes back, as if nothing moved."""
    code, message = describe(error)
    return ListPartitionReassignmentsResponse(
        error_code=code,
        error_message=message,
        topics=lazily(
            request.topics or (),
            lambda topic: OngoingTopicReassignment(
                topic.name, lazily(topic.partition_indexes, OngoingPartitionReassignment)
            ),
        ),
    )
