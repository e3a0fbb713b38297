from __future__ import annotations

import pytest

from kbroker.protocol.errors import ErrorCode
from kbroker.protocol.messages.add_raft_voter import AddRaftVoterRequest, Listener
from tests.handlers.conftest import Cluster

SOME_ID, NO_ID = b"a directory's id", bytes(16)


@pytest.mark.parametrize("version", [0, 1])
@pytest.mark.parametrize(
    ("cluster_id", "voter_id", "directory_id", "code"),
    [
        (None, 2, SOME_ID, "UNSUPPORTED_VERSION"),
        (None, 1, SOME_ID, "UNSUPPORTED_VERSION"),
        (None, -1, SOME_ID, "INVALID_REQUEST"),
        (None, 2, NO_ID, "INVALID_REQUEST"),
        ("another", 2, SOME_ID, "INCONSISTENT_CLUSTER_ID"),
        ("another", 2, NO_ID, "INCONSISTENT_CLUSTER_ID"),
    ],
)
def test_nobody_joins_the_quorum_of_one(
    cluster: Cluster, version: int, cluster_id: str | None, voter_id: int, directory_id: bytes, code: str
) -> None:
    listeners = [Listener("CONTROLLER", "127.0.0.1", 1)]
    request = AddRaftVoterRequest(cluster_id, 1000, voter_id, directory_id, listeners)
    answer = cluster.send(request, version)
    assert ErrorCode(answer.error_code).name == code
    assert answer.error_message


def test_a_voter_needs_an_endpoint_for_controllers(cluster: Cluster) -> None:
    request = AddRaftVoterRequest(
        cluster.broker.cluster.cluster_id, 1000, 2, SOME_ID, [Listener("X", "h", 1)]
    )
    answer = cluster.send(request, 1)
    assert answer.error_code == ErrorCode.INVALID_REQUEST
    assert "CONTROLLER" in answer.error_message
