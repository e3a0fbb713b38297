from __future__ import annotations

import pytest

from kbroker.protocol.errors import ErrorCode
from kbroker.protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from kbroker.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestTopic,
)

from .committed_offsets import commit, fetched


@pytest.fixture(autouse=True)
def topic(cluster):
    return cluster.create("orders", partitions=2)


def test_offsets_are_deleted(cluster):
    commit(cluster, 9, "orders")
    partitions = [OffsetDeleteRequestPartition(0), OffsetDeleteRequestPartition(9)]
    request = OffsetDeleteRequest("g", [OffsetDeleteRequestTopic("orders", partitions)])
    response = cluster.send(request, 0)
    assert [(p.partition_index, p.error_code) for p in response.topics[0].partitions] == [
        (0, ErrorCode.NONE),
        (9, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    ]
    fetch = OffsetFetchRequest("g", [OffsetFetchRequestTopic("orders", [0])])
    assert fetched(cluster.send(fetch, 5).topics[0].partitions) == [(0, -1, "", 0)]


def test_offsets_of_a_missing_group_are_not_deleted(cluster):
    response = cluster.send(OffsetDeleteRequest("missing", []), 0)
    assert (response.error_code, response.topics) == (ErrorCode.GROUP_ID_NOT_FOUND, [])
