from __future__ import annotations

import pytest

from kbroker.protocol.errors import ErrorCode
from kbroker.protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity

from .classic_members import joined


@pytest.fixture
def settings():
    return {"node.id": "1", "group.initial.rebalance.delay.ms": "0"}


@pytest.mark.parametrize("version", range(6))
def test_a_member_leaves(cluster, version):
    member_id = joined(cluster, 9).member_id

    def leave(name):
        request = LeaveGroupRequest("g", name)
        if version >= 3:
            request = LeaveGroupRequest("g", members=[MemberIdentity(name)])
        response = cluster.send(request, version)
        if version < 3:
            return response.error_code
        assert response.error_code == ErrorCode.NONE
        assert [member.member_id for member in response.members] == [name]
        return response.members[0].error_code

    assert leave("nobody") == ErrorCode.UNKNOWN_MEMBER_ID
    assert leave(member_id) == ErrorCode.NONE
    assert cluster.broker.groups.groups["g"].is_empty


def test_leaving_no_group_is_refused(cluster):
    response = cluster.send(LeaveGroupRequest("", members=[MemberIdentity("x")]), 5)
    assert (response.error_code, response.members) == (ErrorCode.INVALID_GROUP_ID, [])
