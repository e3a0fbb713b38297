"""LeaveGroup 0–5: members leave a classic group; from 3 on several at once, also static ones by their
instance id.

(KIP-345; 5 adds a reason, KIP-800.) Before 3 the one member's error is the answer's own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kbroker.coordinators.groups.classic_protocol import LeaveResult, LeavingMember
from kbroker.errors import describe
from kbroker.joining import mapped
from kbroker.protocol.errors import ErrorCode
from kbroker.protocol.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse, MemberResponse

if TYPE_CHECKING:
    from kbroker.broker import Broker
    from kbroker.context import RequestContext
    from kbroker.storage.pending import Pending

_FIRST_BATCHED = 3


def handle(
    broker: Broker, request: LeaveGroupRequest, context: RequestContext
) -> LeaveGroupResponse | Pending[LeaveGroupResponse]:
    batched = context.api_version >= _FIRST_BATCHED
    if batched:
        leaving = [LeavingMember(m.member_id, m.group_instance_id, m.reason) for m in request.members]
    else:
        leaving = [LeavingMember(request.member_id)]

    def answer(results: list[LeaveResult]) -> LeaveGroupResponse:
        members = [MemberResponse(r.member_id, r.group_instance_id, _code(r)) for r in results]
        if batched:
            return LeaveGroupResponse(members=members)
        return LeaveGroupResponse(error_code=members[0].error_code)

    return mapped(broker.groups.leave_group(request.group_id, leaving, context.now_ms), answer)


def refuse(request: LeaveGroupRequest, context: RequestContext, error: BaseException) -> LeaveGroupResponse:
    return LeaveGroupResponse(error_code=describe(error)[0])


def _code(result: LeaveResult) -> int:
    return ErrorCode.NONE if result.error is None else describe(result.error)[0]
