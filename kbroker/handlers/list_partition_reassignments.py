"""ListPartitionReassignments 0: moves of partitions between brokers (KIP-455). One broker has none."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kbroker.protocol.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
)
from kbroker.security.acls import AclOperation

if TYPE_CHECKING:
    from kbroker.broker import Broker
    from kbroker.requests.context import RequestContext


def handle(
    broker: Broker, request: ListPartitionReassignmentsRequest, context: RequestContext
) -> ListPartitionReassignmentsResponse:
    broker.resources(context).check_cluster(AclOperation.DESCRIBE)
    return ListPartitionReassignmentsResponse(error_message=None)
