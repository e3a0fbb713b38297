from __future__ import annotations

import pytest

from kbroker.protocol.errors import ErrorCode
from kbroker.protocol.messages.heartbeat import HeartbeatRequest

from .classic_members import joined


@pytest.fixture
def settings():
    return {"node.id": "1", "group.initial.rebalance.delay.ms": "0"}


@pytest.mark.parametrize("version", range(5))
def test_heartbeats(cluster, version):
    member_id = joined(cluster, 9).member_id

    def beat(generation_id):
        return cluster.send(HeartbeatRequest("g", generation_id, member_id), version).error_code

    assert beat(1) == ErrorCode.NONE
    assert beat(2) == ErrorCode.ILLEGAL_GENERATION
