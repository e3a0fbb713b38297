"""ShareGroupHeartbeat 1: a member of a share group joins, stays, is told what to read, leaves (KIP-932)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kbroker.coordinators.groups.share.requests import ShareHeartbeatRequest, ShareHeartbeatResult
from kbroker.errors import describe
from kbroker.pending import Pending, mapped
from kbroker.protocol.messages.share_group_heartbeat import (
    Assignment,
    ShareGroupHeartbeatRequest,
    ShareGroupHeartbeatResponse,
    TopicPartitions,
)
from kbroker.requests.subscribing import check_subscription
from kbroker.security.acls import AclOperation

if TYPE_CHECKING:
    from kbroker.broker import Broker
    from kbroker.requests.context import RequestContext


def handle(
    broker: Broker, request: ShareGroupHeartbeatRequest, context: RequestContext
) -> ShareGroupHeartbeatResponse | Pending[ShareGroupHeartbeatResponse]:
    broker.features.require("share.version", 1)
    resources = broker.resources(context)
    groups = resources.groups(request.group_id, AclOperation.READ)
    check_subscription(resources, request.subscribed_topic_names)
    heartbeat = ShareHeartbeatRequest(
        group_id=request.group_id,
        member_id=request.member_id,
        member_epoch=request.member_epoch,
        rack_id=request.rack_id,
        subscribed_topic_names=request.subscribed_topic_names,
        client_id=context.client_id or "",
        client_host=f"/{context.peer_host}",
    )
    return mapped(groups.share_groups.heartbeat(heartbeat, context.now_ms), _response)


def refuse(
    request: ShareGroupHeartbeatRequest, context: RequestContext, error: Exception
) -> ShareGroupHeartbeatResponse:
    code, message = describe(error)
    return ShareGroupHeartbeatResponse(error_code=code, error_message=message)


def _response(result: ShareHeartbeatResult) -> ShareGroupHeartbeatResponse:
    response = ShareGroupHeartbeatResponse(
        member_id=result.member_id,
        member_epoch=result.member_epoch,
        heartbeat_interval_ms=result.heartbeat_interval_ms,
    )
    if result.assignment is not None:
        response.assignment = Assignment(
            [TopicPartitions(topic_id, sorted(held)) for topic_id, held in result.assignment.items()]
        )
    return response
