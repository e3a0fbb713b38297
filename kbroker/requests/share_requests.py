"""What ShareFetch and ShareAcknowledge have in common: who sends them, and how they list partitions."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from kbroker.coordinators.shares.partition import Acknowledgement
from kbroker.protocol.errors import ApiError, ErrorCode
from kbroker.security.acls import AclOperation

if TYPE_CHECKING:
    from kbroker.broker import Broker
    from kbroker.requests.context import RequestContext
    from kbroker.requests.share_sessions import Partition
    from kbroker.shares.registry import Shares

_AT_ONCE = 2_000  # types of acknowledgements, which are dealt with before others have their turn
_LONGEST_MEMBER_ID = 36
MOST_REQUEST_BYTES = 1024 * 1024
"""Of a request that acknowledges: some 50,000 records by themselves, which take tens of milliseconds."""


def sender(broker: Broker, request: Any, context: RequestContext) -> tuple[Shares, str, str]:
    """What the sender may use, its group and its member id. Raises ApiError, in Kafka's order of checks."""
    broker.features.require("share.version", 1)
    if request.group_id is None:
        raise ApiError(ErrorCode.INVALID_REQUEST, "The group id is missing.")
    shares = broker.resources(context).shares(request.group_id, AclOperation.READ)
    if not request.member_id or len(request.member_id) > _LONGEST_MEMBER_ID:
        raise ApiError(ErrorCode.INVALID_REQUEST, "The member id is missing, or too long.")
    return shares, request.group_id, request.member_id


def acknowledgements_of(topics: Iterable[Any]) -> dict[Partition, list[Acknowledgement]]:
    """By partition, for all that are listed; one that is listed twice counts as it is listed last."""
    return {
        (topic.topic_id, partition.partition_index): [
            Acknowledgement(batch.first_offset, batch.last_offset, batch.acknowledge_types)
            for batch in partition.acknowledgement_batches
        ]
        for topic in topics
        for partition in topic.partitions
    }


def are_many(acknowledgements: dict[Partition, list[Acknowledgement]]) -> bool:
    """Whether they take long enough to let others have their turn."""
    return sum(len(each.types) for batches in acknowledgements.values() for each in batches) > _AT_ONCE
