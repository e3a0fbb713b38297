from __future__ import annotations

import pytest

from kbroker.protocol.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
    ListPartitionReassignmentsTopics,
)


@pytest.mark.parametrize("topics", [None, [], [ListPartitionReassignmentsTopics("t", [0, 9])]])
def test_no_partition_is_ever_being_moved(cluster, topics):
    cluster.create("t")
    response = cluster.send(ListPartitionReassignmentsRequest(topics=topics), 0)
    assert response == ListPartitionReassignmentsResponse(error_message=None)
