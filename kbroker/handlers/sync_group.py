"""SyncGroup 0–5: the leader of a classic group brings the assignment, everybody gets its own.

3 adds static members (KIP-345). From 5 on both sides name the protocol (KIP-559): the client has to.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kbroker.coordinators.groups.classic.protocol import SyncRequest, SyncResult
from kbroker.coordinators.groups.errors import InconsistentGroupProtocol
from kbroker.pending import mapped
from kbroker.protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse
from kbroker.requests.long_requests import Steps, each
from kbroker.requests.traits import Traits
from kbroker.security.acls import AclOperation

if TYPE_CHECKING:
    from kbroker.broker import Broker
    from kbroker.pending import Pending
    from kbroker.requests.context import RequestContext

TRAITS = Traits(long_poll=True)


def handle(
    broker: Broker, request: SyncGroupRequest, context: RequestContext
) -> Steps[SyncGroupResponse | Pending[SyncGroupResponse]]:
    groups = broker.resources(context).groups(request.group_id, AclOperation.READ)
    if context.api_version >= 5 and (request.protocol_type is None or request.protocol_name is None):
        raise InconsistentGroupProtocol("the protocol type and name are missing")
    given = yield from each(request.assignments, lambda given: (given.member_id, bytes(given.assignment)))
    sync = SyncRequest(
        group_id=request.group_id,
        member_id=request.member_id,
        group_instance_id=request.group_instance_id,
        generation_id=request.generation_id,
        protocol_type=request.protocol_type,
        protocol_name=request.protocol_name,
        assignments=dict(given),
    )
    return mapped(groups.sync_group(sync, context.now_ms), _response)


def _response(result: SyncResult) -> SyncGroupResponse:
    return SyncGroupResponse(
        protocol_type=result.protocol_type, protocol_name=result.protocol_name, assignment=result.assignment
    )
