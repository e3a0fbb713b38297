from __future__ import annotations

import pytest

from kbroker.protocol.errors import ErrorCode
from kbroker.protocol.messages.heartbeat import HeartbeatRequest

from .classic_members import joined


@pytest.fixture
def settings():
    return {"node.id": "1", "group.initial.rebalance.delay.ms": "0"}


@pytest.fixture
def member_id(cluster):
    return joined(cluster, 9).member_id


@pytest.fixture
def beat(cluster, member_id):
    """The error code of a heartbeat of the one member, or of somebody else."""

    def beat(version, generation_id=1, *, member=None, group="g", **fields):
        request = HeartbeatRequest(group, generation_id, member_id if member is None else member, **fields)
        return cluster.send(request, version).error_code

    return beat


@pytest.mark.parametrize("version", range(5))
def test_a_member_is_alive_in_its_generation_only(beat, version):
    assert beat(version) == ErrorCode.NONE
    assert beat(version, 2) == ErrorCode.ILLEGAL_GENERATION
    assert beat(version, 0) == ErrorCode.ILLEGAL_GENERATION


@pytest.mark.parametrize("version", range(5))
def test_who_is_not_in_the_group_hears_so(beat, version):
    assert beat(version, member="nobody") == ErrorCode.UNKNOWN_MEMBER_ID
    assert beat(version, member="") == ErrorCode.UNKNOWN_MEMBER_ID
    assert beat(version, group="missing") == ErrorCode.UNKNOWN_MEMBER_ID
    assert beat(version, group="") == ErrorCode.INVALID_GROUP_ID


@pytest.mark.parametrize("version", [3, 4])
def test_a_static_member_that_nobody_knows_is_unknown(beat, version):
    assert beat(version, group_instance_id="unknown") == ErrorCode.UNKNOWN_MEMBER_ID


def test_a_member_that_is_silent_for_its_session_timeout_is_removed(cluster, beat):
    cluster.now_ms += 10_001
    cluster.broker.groups.tick(cluster.now_ms)
    assert beat(4) == ErrorCode.UNKNOWN_MEMBER_ID
