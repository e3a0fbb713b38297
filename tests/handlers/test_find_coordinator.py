from __future__ import annotations

import pytest

from kbroker.protocol.errors import ErrorCode
from kbroker.protocol.messages.find_coordinator import FindCoordinatorRequest

GROUP, TRANSACTION, SHARE = range(3)


HERE = (1, "127.0.0.1", 19092)


NOWHERE = (-1, "", -1)


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
