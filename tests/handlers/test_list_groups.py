from __future__ import annotations

import pytest

from kbroker.protocol.messages.list_groups import ListGroupsRequest

from .some_groups import make_groups


@pytest.fixture(autouse=True)
def groups(cluster):
    make_groups(cluster)


@pytest.mark.parametrize("version", range(6))
def test_groups_are_listed(cluster, version):
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
def test_groups_are_filtered_by_state_and_type(cluster, states, types, names):
    response = cluster.send(ListGroupsRequest(states, types), 5)
    assert sorted(group.group_id for group in response.groups) == names
