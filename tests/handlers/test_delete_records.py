from __future__ import annotations

import pytest

from kbroker.protocol.errors import ErrorCode
from kbroker.protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)

from .conftest import on_late_logs_too

pytestmark = on_late_logs_too

T = 1_699_999_000_000


@pytest.fixture
def delete(cluster):
    def delete(*offsets: tuple[int, int], topic: str = "t", version: int = 2):
        partitions = [DeleteRecordsPartition(index, offset) for index, offset in offsets]
        request = DeleteRecordsRequest(topics=[DeleteRecordsTopic(topic, partitions)], timeout_ms=1000)
        (answered,) = cluster.send(request, version).topics
        assert answered.name == topic
        return [(p.partition_index, p.low_watermark, p.error_code) for p in answered.partitions]

    return delete


@pytest.fixture(autouse=True)
def log(cluster):
    cluster.create("t")
    cluster.produce("t", T, T, T, T)
    return cluster.broker.find_log("t", 0)


@pytest.mark.parametrize("version", [0, 1, 2])
def test_the_log_start_offset_rises_to_the_offset(delete, log, version):
    assert delete((0, 3), version=version) == [(0, 3, ErrorCode.NONE)]
    assert log.log_start_offset == 3


def test_an_offset_below_the_log_start_changes_nothing(delete, log):
    delete((0, 3))
    assert delete((0, 1)) == [(0, 3, ErrorCode.NONE)]
    assert log.log_start_offset == 3


def test_minus_one_is_the_high_watermark(delete, log):
    assert delete((0, -1)) == [(0, 4, ErrorCode.NONE)]
    assert log.log_start_offset == 4


@pytest.mark.parametrize("offset", [5, -2, 1 << 62, -(1 << 63)])
def test_an_offset_beyond_the_high_watermark_or_below_0_is_out_of_range(delete, log, offset):
    assert delete((0, offset)) == [(0, -1, ErrorCode.OFFSET_OUT_OF_RANGE)]
    assert log.log_start_offset == 0


def test_a_compacted_topic_keeps_its_records(cluster, delete):
    cluster.create("compacted", cleanup_policy="compact")
    cluster.create("both", cleanup_policy="compact,delete")
    cluster.produce("both", T)
    assert delete((0, 0), topic="compacted") == [(0, -1, ErrorCode.POLICY_VIOLATION)]
    assert delete((0, 99), topic="compacted") == [(0, -1, ErrorCode.POLICY_VIOLATION)]
    assert delete((0, 1), topic="both") == [(0, 1, ErrorCode.NONE)]


def test_an_unknown_partition_is_reported_beside_the_others(delete):
    assert delete((1, 0), (0, 1)) == [
        (1, -1, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (0, 1, ErrorCode.NONE),
    ]
    assert delete((0, 0), topic="nope") == [(0, -1, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)]


def test_of_a_partition_named_twice_the_last_offset_counts(delete, log):
    assert delete((0, 3), (0, 2)) == [(0, 2, ErrorCode.NONE)]
