"""FindCoordinator, ListGroups, DescribeGroups and DeleteGroups at all their versions."""

from __future__ import annotations

import pytest

from kbroker.coordinators.groups.classic.protocol import JoinRequest
from kbroker.coordinators.groups.offsets.manager import CommitRequest, NewOffset
from kbroker.protocol.errors import ErrorCode
from kbroker.protocol.messages.delete_groups import DeleteGroupsRequest
from kbroker.protocol.messages.describe_groups import DescribeGroupsRequest
from kbroker.protocol.messages.find_coordinator import FindCoordinatorRequest
from kbroker.protocol.messages.list_groups import ListGroupsRequest

GROUP, TRANSACTION, SHARE = range(3)
HERE = (1, "127.0.0.1", 19092)
NOWHERE = (-1, "", -1)


@pytest.fixture
def groups(cluster):
    """One group with a member, one that only has an offset."""
    cluster.create("orders")
    coordinator = cluster.broker.groups
    coordinator.join_group(
        JoinRequest(
            "busy", "", "i", "app", "/10.0.0.1", 10_000, 10_000, "consumer", (("range", b"metadata"),)
        ),
        cluster.now_ms,
    )
    coordinator.offsets.commit(CommitRequest("simple", [NewOffset("orders", 0, 1)]), cluster.now_ms)


@pytest.mark.parametrize("version", range(4))
def test_the_coordinator_of_one_key_is_here(cluster, version):
    response = cluster.send(FindCoordinatorRequest(key="g"), version)
    assert (response.node_id, response.host, response.port) == HERE
    assert response.error_code == ErrorCode.NONE


@pytest.mark.parametrize("version", range(4, 7))
@pytest.mark.parametrize("key_type", [GROUP, TRANSACTION])
def test_the_coordinators_of_many_keys_are_here(cluster, version, key_type):
    response = cluster.send(FindCoordinatorRequest(key_type=key_type, coordinator_keys=["a", "b"]), version)
    found = [(c.key, (c.node_id, c.host, c.port), c.error_code) for c in response.coordinators]
    assert found == [("a", HERE, 0), ("b", HERE, 0)]


@pytest.mark.parametrize(
    ("version", "key_type", "key"),
    [
        (6, 3, "g"),
        (4, SHARE, "g:AAAAAAAAAAAAAAAAAAAAAQ:0"),
        (6, SHARE, "not a share partition"),
        (3, 3, "g"),
        (1, SHARE, "g"),
    ],
)
def test_a_key_that_makes_no_sense_has_no_coordinator(cluster, version, key_type, key):
    request = FindCoordinatorRequest(key, key_type)
    if version >= 4:
        request = FindCoordinatorRequest(key_type=key_type, coordinator_keys=[key])
    response = cluster.send(request, version)
    answer = response.coordinators[0] if version >= 4 else response
    assert answer.error_code == ErrorCode.INVALID_REQUEST
    assert (answer.node_id, answer.host, answer.port) == NOWHERE


def test_the_coordinator_of_a_share_partition_is_here(cluster):
    request = FindCoordinatorRequest(key_type=SHARE, coordinator_keys=["g:AAAAAAAAAAAAAAAAAAAAAQ:0"])
    (coordinator,) = cluster.send(request, 6).coordinators
    assert (coordinator.node_id, coordinator.host, coordinator.port) == HERE


@pytest.mark.parametrize("version", range(6))
def test_groups_are_listed(cluster, groups, version):
    listed = {group.group_id: group for group in cluster.send(ListGroupsRequest(), version).groups}
    assert {name: group.protocol_type for name, group in listed.items()} == {"busy": "consumer", "simple": ""}
    assert listed["busy"].group_state == ("PreparingRebalance" if version >= 4 else "")
    assert listed["busy"].group_type == ("classic" if version >= 5 else "")


@pytest.mark.parametrize(
    ("states", "types", "names"),
    [
        (["empty"], [], ["simple"]),
        (["PREPARINGREBALANCE", "Stable"], ["Classic"], ["busy"]),
        (["Dead"], [], []),
        ([], ["consumer"], []),
        ([], ["classic"], ["busy", "simple"]),
    ],
)
def test_groups_are_filtered_by_state_and_type(cluster, groups, states, types, names):
    response = cluster.send(ListGroupsRequest(states, types), 5)
    assert sorted(group.group_id for group in response.groups) == names


@pytest.mark.parametrize("version", range(7))
def test_groups_are_described(cluster, groups, version):
    busy, missing = cluster.send(DescribeGroupsRequest(["busy", "missing"]), version).groups
    assert (busy.error_code, busy.group_state, busy.protocol_type) == (0, "PreparingRebalance", "consumer")
    (member,) = busy.members
    assert (member.client_id, member.client_host) == ("app", "/10.0.0.1")
    assert member.group_instance_id == ("i" if version >= 4 else None)
    assert missing.group_state == "Dead"
    not_found = (ErrorCode.GROUP_ID_NOT_FOUND, "Group missing not found.")
    assert (missing.error_code, missing.error_message) == (not_found if version >= 6 else (0, None))


def test_authorized_operations_are_told_on_demand(cluster, groups):
    asked = cluster.send(DescribeGroupsRequest(["busy"], True), 6).groups[0]
    not_asked = cluster.send(DescribeGroupsRequest(["busy"]), 6).groups[0]
    assert not_asked.authorized_operations == -(2**31)
    assert asked.authorized_operations > 0


@pytest.mark.parametrize("version", range(3))
def test_groups_are_deleted(cluster, groups, version):
    response = cluster.send(DeleteGroupsRequest(["busy", "simple", "missing", "busy"]), version)
    assert [(result.group_id, result.error_code) for result in response.results] == [
        ("busy", ErrorCode.NON_EMPTY_GROUP),
        ("simple", ErrorCode.NONE),
        ("missing", ErrorCode.GROUP_ID_NOT_FOUND),
    ]
    assert list(cluster.broker.groups.groups) == ["busy"]
