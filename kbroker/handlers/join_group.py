"""JoinGroup 0–9: become or stay a member of a classic group; the answer waits for the others.

From 4 on a new dynamic member is first given its id (KIP-394), from 5 on members may be static (KIP-345), 7
names the protocol type (KIP-559), 8 brings a reason (KIP-800), 9 tells a returning static leader not to
assign (KIP-814). Version 0 has no rebalance timeout: its session timeout serves.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kbroker.coordinators.groups.classic.protocol import JoinRequest, JoinResult
from kbroker.errors import describe
from kbroker.pending import mapped
from kbroker.protocol.errors import ApiError
from kbroker.protocol.messages.join_group import JoinGroupRequest, JoinGroupResponse, JoinGroupResponseMember
from kbroker.requests.long_requests import Steps, each, lazily
from kbroker.requests.traits import Traits
from kbroker.security.acls import AclOperation

if TYPE_CHECKING:
    from kbroker.broker import Broker
    from kbroker.pending import Pending
    from kbroker.requests.context import RequestContext

_FIRST_WITHOUT_PROTOCOL_NAME = 7

TRAITS = Traits(long_poll=True)


def handle(
    broker: Broker, request: JoinGroupRequest, context: RequestContext
) -> Steps[JoinGroupResponse | Pending[JoinGroupResponse]]:
    groups = broker.resources(context).groups(request.group_id, AclOperation.READ)
    version = context.api_version
    protocols = yield from each(request.protocols, lambda each: (each.name, bytes(each.metadata)))
    join = JoinRequest(
        group_id=request.group_id,
        member_id=request.member_id,
        group_instance_id=request.group_instance_id,
        client_id=context.client_id or "",
        client_host=f"/{context.peer_host}",
        session_timeout_ms=request.session_timeout_ms,
        rebalance_timeout_ms=request.rebalance_timeout_ms if version else request.session_timeout_ms,
        protocol_type=request.protocol_type,
        protocols=tuple(protocols),
        member_id_required=version >= 4,
        can_skip_assignment=version >= 9,
        reason=request.reason,
    )
    return mapped(groups.join_group(join, context.now_ms), _response)


def _response(result: JoinResult) -> JoinGroupResponse:
    return JoinGroupResponse(
        generation_id=result.generation_id,
        protocol_type=result.protocol_type,
        protocol_name=result.protocol_name,
        leader=result.leader,
        skip_assignment=result.skip_assignment,
        member_id=result.member_id,
        members=lazily(result.members, lambda member: JoinGroupResponseMember(*member)),
    )


def refuse(request: JoinGroupRequest, context: RequestContext, error: BaseException) -> JoinGroupResponse:
    code, _ = describe(error)
    member_id = "" if isinstance(error, ApiError) else getattr(error, "member_id", None)
    return JoinGroupResponse(
        error_code=code,
        protocol_name=None if context.api_version >= _FIRST_WITHOUT_PROTOCOL_NAME else "",
        member_id=request.member_id if member_id is None else member_id,
    )
