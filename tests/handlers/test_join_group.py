from __future__ import annotations

import pytest

from kbroker.protocol.errors import ErrorCode
from kbroker.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol

from .classic_members import join, joined, sync


@pytest.fixture
def settings():
    return {"node.id": "1", "group.initial.rebalance.delay.ms": "0"}


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
