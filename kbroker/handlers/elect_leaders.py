"""ElectLeaders 0–2: make the preferred replica, or from version 1 any live one, lead (KIP-183, KIP-460).

The one replica of every partition leads already, so no election is ever needed. Asked about all
partitions, the answer leaves out those that need none: all of them.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from kbroker.protocol.errors import ErrorCode
from kbroker.protocol.messages.elect_leaders import (
    ElectLeadersRequest,
    ElectLeadersResponse,
    PartitionResult,
    ReplicaElectionResult,
)
from kbroker.requests.long_requests import lazily
from kbroker.security.acls import AclOperation

if TYPE_CHECKING:
    from kbroker.broker import Broker
    from kbroker.requests.context import RequestContext
    from kbroker.requests.resources import Resources

_PREFERRED, _UNCLEAN = 0, 1


def handle(broker: Broker, request: ElectLeadersRequest, context: RequestContext) -> ElectLeadersResponse:
    resources = broker.resources(context).of_cluster(AclOperation.ALTER)
    asked = request.topic_partitions
    known_type = request.election_type in (_PREFERRED, _UNCLEAN) or asked == []  # nothing to elect
    if asked is None:
        results = (
            lazily(resources.topic_names(AclOperation.ALTER), ReplicaElectionResult) if known_type else []
        )
    else:
        results = lazily(
            asked,
            lambda topic: ReplicaElectionResult(
                topic.topic,
                lazily(
                    topic.partitions,
                    partial(_elect, resources, topic.topic) if known_type else partial(_bad_type, request),
                ),
            ),
        )
    code = ErrorCode.NONE if known_type else ErrorCode.INVALID_REQUEST
    return ElectLeadersResponse(error_code=code, replica_election_results=results)


def _elect(resources: Resources, topic_name: str, partition: int) -> PartitionResult:
    if not resources.has_partition(topic_name, partition):
        code, message = (
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            f"There is no partition {topic_name}-{partition}.",
        )
    else:
        code, message = ErrorCode.ELECTION_NOT_NEEDED, "The preferred replica leads."
    return PartitionResult(partition, code, message)


def _bad_type(request: ElectLeadersRequest, partition: int) -> PartitionResult:
    return PartitionResult(
        partition, ErrorCode.INVALID_REQUEST, f"There is no election type {request.election_type}."
    )
