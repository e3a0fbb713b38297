from __future__ import annotations

import pytest

from kbroker.protocol.errors import ErrorCode
from kbroker.protocol.messages.remove_raft_voter import RemoveRaftVoterRequest
from tests.handlers.conftest import Cluster

SOME_ID, NO_ID = b"a directory's id", bytes(16)


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
def test_nobody_leaves_the_quorum_of_one(
    cluster: Cluster, cluster_id: str | None, voter_id: int, directory_id: bytes, code: str
) -> None:
    answer = cluster.send(RemoveRaftVoterRequest(cluster_id, voter_id, directory_id), 0)
    assert ErrorCode(answer.error_code).name == code
    assert answer.error_message
