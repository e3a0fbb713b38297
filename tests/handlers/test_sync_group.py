from __future__ import annotations

import pytest

from kbroker.protocol.errors import ErrorCode

from .classic_members import joined, sync


@pytest.fixture
def settings():
    return {"node.id": "1", "group.initial.rebalance.delay.ms": "0"}


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
