"""ConsumerGroupHeartbeat 0–1: a member of a consumer group joins, stays, gives up and takes partitions,
leaves (KIP-848). From version 1 the client brings its member id (KIP-1082) and may subscribe by regular
expression.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import TYPE_CHECKING

from kbroker.coordinators.groups.consumer.member import Owned
from kbroker.coordinators.groups.consumer.requests import HeartbeatRequest, HeartbeatResult
from kbroker.errors import describe
from kbroker.pending import Pending, mapped
from kbroker.protocol.messages.consumer_group_heartbeat import (
    Assignment,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)
from kbroker.requests.long_requests import Steps
from kbroker.requests.subscribing import check_subscription
from kbroker.security.acls import AclOperation

if TYPE_CHECKING:
    from kbroker.broker import Broker
    from kbroker.requests.context import RequestContext


def handle(
    broker: Broker, request: ConsumerGroupHeartbeatRequest, context: RequestContext
) -> Steps[ConsumerGroupHeartbeatResponse | Pending[ConsumerGroupHeartbeatResponse]]:
    broker.features.require("group.version", 1)
    resources = broker.resources(context)
    groups = resources.groups(request.group_id, AclOperation.READ)
    check_subscription(resources, request.subscribed_topic_names)
    owned = None
    if request.topic_partitions is not None:
        owned = yield from _owned(request.topic_partitions)
    heartbeat = HeartbeatRequest(
        group_id=request.group_id,
        member_id=request.member_id,
        member_epoch=request.member_epoch,
        instance_id=request.instance_id,
        rack_id=request.rack_id,
        rebalance_timeout_ms=request.rebalance_timeout_ms,
        subscribed_topic_names=request.subscribed_topic_names,
        subscribed_topic_regex=request.subscribed_topic_regex,
        server_assignor=request.server_assignor,
        owned=owned,
        client_id=context.client_id or "",
        client_host=f"/{context.peer_host}",
        brings_member_id=context.api_version >= 1,
        may_see=partial(resources.may_topic, AclOperation.DESCRIBE) if resources.restricted else None,
    )
    return mapped(groups.consumer_groups.heartbeat(heartbeat, context.now_ms), _response)


def refuse(
    request: ConsumerGroupHeartbeatRequest, context: RequestContext, error: Exception
) -> ConsumerGroupHeartbeatResponse:
    code, message = describe(error)
    return ConsumerGroupHeartbeatResponse(error_code=code, error_message=message)


def _owned(topics: Iterable[TopicPartitions]) -> Steps[Owned]:
    """What a request lists, which may name a topic twice."""
    owned: dict[bytes, set[int]] = {}
    for topic in topics:
        owned.setdefault(topic.topic_id, set()).update(topic.partitions)
        yield None
    return owned


def _response(result: HeartbeatResult) -> ConsumerGroupHeartbeatResponse:
    response = ConsumerGroupHeartbeatResponse(
        member_id=result.member_id,
        member_epoch=result.member_epoch,
        heartbeat_interval_ms=result.heartbeat_interval_ms,
    )
    if result.assignment is not None:
        response.assignment = Assignment(
            [
                TopicPartitions(topic_id, sorted(partitions))
                for topic_id, partitions in result.assignment.items()
            ]
        )
    return response
