from __future__ import annotations

import pytest

from kbroker.protocol.errors import ErrorCode

from .committed_offsets import UNKNOWN_ID, commit


@pytest.fixture(autouse=True)
def topic(cluster):
    return cluster.create("orders", partitions=2)


@pytest.mark.parametrize("version", range(10))
def test_offsets_are_committed_by_name(cluster, version):
    assert commit(cluster, version, "orders", "nothing") == [
        ErrorCode.NONE,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ]
    assert len(cluster.broker.groups.groups) == 1


def test_offsets_are_committed_by_id_from_version_10_on(cluster, topic):
    codes = commit(cluster, 10, topic.topic_id, UNKNOWN_ID)
    assert codes == [ErrorCode.NONE, ErrorCode.UNKNOWN_TOPIC_ID]


def test_the_error_of_the_group_is_that_of_each_partition(cluster):
    codes = commit(cluster, 9, "orders", "nothing", generation_id_or_member_epoch=3, member_id="x")
    assert codes == [ErrorCode.GROUP_ID_NOT_FOUND, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
    codes = commit(cluster, 8, "orders", generation_id_or_member_epoch=3, member_id="x")
    assert codes == [ErrorCode.ILLEGAL_GENERATION]


def test_a_retention_time_is_kept_with_the_commit(cluster):
    commit(cluster, 4, "orders", retention_time_ms=5_000)
    ((stored,),) = [offsets.values() for offsets in cluster.broker.groups.offsets._table._committed.values()]
    assert stored.expire_timestamp_ms == cluster.now_ms + 5_000
