from __future__ import annotations

import pytest

from kbroker.protocol.errors import ErrorCode
from kbroker.protocol.messages.describe_groups import DescribeGroupsRequest

from .some_groups import make_groups


@pytest.fixture(autouse=True)
def groups(cluster):
    make_groups(cluster)


@pytest.mark.parametrize("version", range(7))
def test_groups_are_described(cluster, version):
    busy, missing = cluster.send(DescribeGroupsRequest(["busy", "missing"]), version).groups
    assert (busy.error_code, busy.group_state, busy.protocol_type) == (0, "PreparingRebalance", "consumer")
    (member,) = busy.members
    assert (member.client_id, member.client_host) == ("app", "/10.0.0.1")
    assert member.group_instance_id == ("i" if version >= 4 else None)
    assert missing.group_state == "Dead"
    not_found = (ErrorCode.GROUP_ID_NOT_FOUND, "Group missing not found.")
    assert (missing.error_code, missing.error_message) == (not_found if version >= 6 else (0, None))


def test_authorized_operations_are_told_on_demand(cluster):
    asked = cluster.send(DescribeGroupsRequest(["busy"], True), 6).groups[0]
    not_asked = cluster.send(DescribeGroupsRequest(["busy"]), 6).groups[0]
    assert not_asked.authorized_operations == -(2**31)
    assert asked.authorized_operations > 0
