"""Heartbeat 0–4: a member of a classic group is alive, and hears of rebalances.

3 adds static members (KIP-345).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kbroker.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from kbroker.security.acls import AclOperation

if TYPE_CHECKING:
    from kbroker.broker import Broker
    from kbroker.requests.context import RequestContext


def handle(broker: Broker, request: HeartbeatRequest, context: RequestContext) -> HeartbeatResponse:
    broker.resources(context).groups(request.group_id, AclOperation.READ).heartbeat(
        request.group_id,
        request.member_id,
        request.group_instance_id,
        request.generation_id,
        context.now_ms,
    )
    return HeartbeatResponse()
