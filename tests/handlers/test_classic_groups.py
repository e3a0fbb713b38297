"""JoinGroup, SyncGroup, Heartbeat and LeaveGroup at all their versions."""

from __future__ import annotations

import pytest

from kbroker.protocol.errors import ErrorCode
from kbroker.protocol.messages.heartbeat import HeartbeatRequest
from kbroker.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from kbroker.protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from kbroker.protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment


@pytest.fixture
def settings():
    return {"node.id": "1", "group.initial.rebalance.delay.ms": "0"}


def join(cluster, version, member_id="", **fields):
    request = JoinGroupRequest(
        group_id="g",
        session_timeout_ms=fields.pop("session_timeout_ms", 10_000),
        rebalance_timeout_ms=20_000,
        member_id=member_id,
        protocol_type="consumer",
        protocols=[JoinGroupRequestProtocol("range", b"metadata")],
        **fields,
    )
    response = cluster.send(request, version)
    if not hasattr(response, "error_code"):
        cluster.broker.groups.tick(cluster.now_ms)
        response = response.result()
    return response


def joined(cluster, version):
    """A member's JoinGroup response, both steps of it."""
    response = join(cluster, version)
    if response.error_code == ErrorCode.MEMBER_ID_REQUIRED:
        response = join(cluster, version, response.member_id)
    assert response.error_code == ErrorCode.NONE
    return response


def sync(cluster, version, member_id, generation_id, **fields):
    if version >= 5:
        fields = {"protocol_type": "consumer", "protocol_name": "range", **fields}
    assignments = [SyncGroupRequestAssignment(member_id, b"assignment")]
    request = SyncGroupRequest(
        group_id="g",
        generation_id=generation_id,
        member_id=member_id,
        assignments=assignments,
        **fields,
    )
    return cluster.send(request, version)


@pytest.mark.parametrize("version", range(10))
def test_a_member_joins(cluster, version):
    response = joined(cluster, version)
    assert (response.generation_id, response.leader) == (1, response.member_id)
    assert response.protocol_name == "range"
    assert response.protocol_type == ("consumer" if version >= 7 else None)
    assert [(m.member_id, m.metadata) for m in response.members] == [(response.member_id, b"metadata")]


@pytest.mark.parametrize("version", range(10))
def test_the_member_id_is_required_from_version_4_on(cluster, version):
    first = join(cluster, version)
    required = first.error_code == ErrorCode.MEMBER_ID_REQUIRED
    assert required == (version >= 4)
    assert first.member_id.startswith("test-")


@pytest.mark.parametrize("version", range(10))
def test_a_refused_join_carries_the_member_id_of_the_request(cluster, version):
    response = join(cluster, version, "nobody")
    assert response.error_code == ErrorCode.UNKNOWN_MEMBER_ID
    assert (response.member_id, response.generation_id, response.leader) == ("nobody", -1, "")
    assert response.protocol_name == (None if version >= 7 else "")


def test_version_0_has_its_session_timeout_for_a_rebalance_timeout(cluster):
    join(cluster, 0, session_timeout_ms=7_000)
    (member,) = cluster.broker.groups.groups["g"].members
    assert member.rebalance_timeout_ms == 7_000
    assert member.client_host == "/127.0.0.1"


def test_a_returning_static_leader_skips_the_assignment_from_version_9_on(cluster):
    first = join(cluster, 9, group_instance_id="i")
    sync(cluster, 5, first.member_id, 1, group_instance_id="i")
    second = join(cluster, 9, group_instance_id="i")
    assert (second.skip_assignment, second.leader) == (True, second.member_id)
    third = join(cluster, 8, group_instance_id="i")
    assert (third.skip_assignment, third.leader) == (False, second.member_id)


@pytest.mark.parametrize("version", range(6))
def test_a_member_syncs(cluster, version):
    member_id = joined(cluster, 9).member_id
    response = sync(cluster, version, member_id, 1)
    assert (response.error_code, response.assignment) == (ErrorCode.NONE, b"assignment")
    assert response.protocol_name == ("range" if version >= 5 else None)


def test_the_protocol_is_mandatory_in_version_5_of_sync(cluster):
    member_id = joined(cluster, 9).member_id
    for missing in ("protocol_type", "protocol_name"):
        response = sync(cluster, 5, member_id, 1, **{missing: None})
        assert response.error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL


@pytest.mark.parametrize("version", range(6))
def test_a_refused_sync(cluster, version):
    response = sync(cluster, version, "nobody", 1)
    assert (response.error_code, response.assignment) == (ErrorCode.UNKNOWN_MEMBER_ID, b"")


@pytest.mark.parametrize("version", range(5))
def test_heartbeats(cluster, version):
    member_id = joined(cluster, 9).member_id

    def beat(generation_id):
        return cluster.send(HeartbeatRequest("g", generation_id, member_id), version).error_code

    assert beat(1) == ErrorCode.NONE
    assert beat(2) == ErrorCode.ILLEGAL_GENERATION


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


def test_a_join_that_its_client_gave_up_disturbs_nobody(cluster):
    member_id = join(cluster, 9).member_id
    request = JoinGroupRequest(
        group_id="g",
        session_timeout_ms=10_000,
        rebalance_timeout_ms=20_000,
        member_id=member_id,
        protocol_type="consumer",
        protocols=[JoinGroupRequestProtocol("range", b"metadata")],
    )
    waiting = cluster.send(request, 9)
    waiting.abandon()
    cluster.broker.groups.tick(cluster.now_ms)
    assert join(cluster, 9, member_id).generation_id == 1
