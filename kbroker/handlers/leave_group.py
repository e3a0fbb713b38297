"""LeaveGroup 0–5: members leave a classic group; from 3 on several at once, also static ones by their
instance id.

(KIP-345; 5 adds a reason, KIP-800.) Before 3 the one member's error is the answer's own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kbroker.coordinators.groups.classic.protocol import LeaveResult, LeavingMember
from kbroker.errors import describe
from kbroker.pending import mapped, wait
from kbroker.protocol.errors import ErrorCode
from kbroker.protocol.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse, MemberResponse
from kbroker.requests.long_requests import Steps
from kbroker.security.acls import AclOperation

if TYPE_CHECKING:
    from kbroker.broker import Broker
    from kbroker.coordinators.groups.coordinator import GroupCoordinator
    from kbroker.pending import Pending
    from kbroker.requests.context import RequestContext

_FIRST_BATCHED = 3
_AT_ONCE = 500  # members that keep others waiting


def handle(
    broker: Broker, request: LeaveGroupRequest, context: RequestContext
) -> LeaveGroupResponse | Pending[LeaveGroupResponse] | Steps[LeaveGroupResponse]:
    groups = broker.resources(context).groups(request.group_id, AclOperation.READ)
    if context.api_version >= _FIRST_BATCHED:
        return _leave_together(groups, request, context)
    left = groups.leave_group(request.group_id, [LeavingMember(request.member_id)], context.now_ms)

    def answer(results: list[LeaveResult]) -> LeaveGroupResponse:
        return LeaveGroupResponse(error_code=_code(results[0]))

    return mapped(left, answer)


def _leave_together(
    groups: GroupCoordinator, request: LeaveGroupRequest, context: RequestContext
) -> Steps[LeaveGroupResponse]:
    """A few members at a time; others have their turn in between."""
    members: list[MemberResponse] = []
    for start in range(0, max(len(request.members), 1), _AT_ONCE):
        piece = request.members[start : start + _AT_ONCE]
        leaving = [LeavingMember(m.member_id, m.group_instance_id, m.reason) for m in piece]
        results = yield from wait(groups.leave_group(request.group_id, leaving, context.now_ms))
        members += [MemberResponse(r.member_id, r.group_instance_id, _code(r)) for r in results]
        yield None
    return LeaveGroupResponse(members=members)


def refuse(request: LeaveGroupRequest, context: RequestContext, error: BaseException) -> LeaveGroupResponse:
    return LeaveGroupResponse(error_code=describe(error)[0])


def _code(result: LeaveResult) -> int:
    return ErrorCode.NONE if result.error is None else describe(result.error)[0]
