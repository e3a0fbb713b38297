"""AlterPartitionReassignments 0–1: move partitions to other brokers, or cancel a move (KIP-455, KIP-860).

There is one broker: a partition can be assigned to it, where it already is, and to no other; there is
never a move to cancel. Version 1 adds whether the replication factor may change, which it cannot here.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from kbroker.protocol.errors import ApiError, ErrorCode
from kbroker.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ReassignablePartition,
    ReassignablePartitionResponse,
    ReassignableTopicResponse,
)
from kbroker.requests.long_requests import lazily
from kbroker.security.acls import AclOperation

if TYPE_CHECKING:
    from kbroker.broker import Broker
    from kbroker.requests.context import RequestContext
    from kbroker.requests.resources import Resources


def handle(
    broker: Broker, request: AlterPartitionReassignmentsRequest, context: RequestContext
) -> AlterPartitionReassignmentsResponse:
    resources = broker.resources(context)
    resources.check_cluster(AclOperation.ALTER)
    return AlterPartitionReassignmentsResponse(
        allow_replication_factor_change=request.allow_replication_factor_change,
        error_message=None,
        responses=lazily(
            request.topics,
            lambda topic: ReassignableTopicResponse(
                topic.name, lazily(topic.partitions, partial(_reassign, resources, topic.name))
            ),
        ),
    )


def _reassign(
    resources: Resources, topic: str, asked: ReassignablePartition
) -> ReassignablePartitionResponse:
    try:
        _check(resources, topic, asked)
    except ApiError as error:
        return ReassignablePartitionResponse(asked.partition_index, error.code, error.message)
    return ReassignablePartitionResponse(asked.partition_index, error_message=None)


def _check(resources: Resources, name: str, asked: ReassignablePartition) -> None:
    if not resources.has_partition(name, asked.partition_index):
        raise ApiError(
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"There is no partition {name}-{asked.partition_index}."
        )
    if asked.replicas is None:
        raise ApiError(ErrorCode.NO_REASSIGNMENT_IN_PROGRESS)
    if not asked.replicas:
        raise ApiError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, "The assignment has no replica.")
    unknown = sorted(replica for replica in asked.replicas if not resources.broker.cluster.has_node(replica))
    if unknown:
        raise ApiError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, f"There is no broker {unknown[0]}.")
    if len(asked.replicas) > 1:
        raise ApiError(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT, f"The assignment has broker {asked.replicas[0]} twice."
        )
