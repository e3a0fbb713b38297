from __future__ import annotations

import pytest

from kbroker.protocol.errors import ErrorCode
from kbroker.protocol.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from kbroker.protocol.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)

from .transactional_producer import TransactionalProducer

VERSIONS = pytest.mark.parametrize("version", [1, 2])
NONE, UNKNOWN = ErrorCode.NONE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


@pytest.fixture
def producer(cluster, request):
    """One that has written a record to partition 0 in a transaction."""
    cluster.create("t", partitions=2)
    producer = TransactionalProducer(cluster, request.node.name)
    producer.init()
    producer.add("t")
    producer.produce("t")
    return producer


@pytest.fixture
def mark(producer):
    """Partition -> error code."""

    def mark(epoch=0, *partitions, topic="t", commit=False, coordinator_epoch=0, version=1, **fields):
        marker = WritableTxnMarker(
            producer.producer_id,
            epoch,
            commit,
            [WritableTxnMarkerTopic(topic, list(partitions or (0,)))],
            coordinator_epoch,
            **fields,
        )
        (answered,) = producer.cluster.send(WriteTxnMarkersRequest([marker]), version).markers
        assert answered.producer_id == producer.producer_id
        return {each.partition_index: each.error_code for each in answered.topics[0].partitions}

    return mark


def last_stable_offset(cluster) -> int:
    asked = ListOffsetsTopic("t", [ListOffsetsPartition(0, timestamp=-1)])
    (answered,) = cluster.send(ListOffsetsRequest(-1, 1, [asked]), 4).topics
    return answered.partitions[0].offset


@pytest.mark.parametrize("commit", [True, False])
@VERSIONS
def test_a_marker_ends_the_transaction_in_the_log(cluster, mark, version, commit):
    assert last_stable_offset(cluster) == 0
    assert mark(0, version=version, commit=commit) == {0: NONE}
    assert last_stable_offset(cluster) == cluster.end_offset("t") == 2


def test_version_0_writes_markers_too(cluster, mark):
    assert mark(0, version=0) == {0: NONE}
    assert last_stable_offset(cluster) == 2


@VERSIONS
def test_a_partition_that_is_not_there_is_refused_alone(cluster, mark, version):
    assert mark(0, 0, 7, version=version) == {0: NONE, 7: UNKNOWN}
    assert mark(0, topic="missing", version=version) == {0: UNKNOWN}
    assert last_stable_offset(cluster) == 2


@VERSIONS
def test_a_marker_of_a_newer_epoch_fences_those_of_older_ones(mark, version):
    assert mark(1, version=version) == {0: NONE}
    assert mark(0, version=version) == {0: ErrorCode.INVALID_PRODUCER_EPOCH}


@VERSIONS
def test_a_marker_of_a_coordinator_that_was_replaced_is_refused(mark, version):
    assert mark(0, coordinator_epoch=5, version=version) == {0: NONE}
    assert mark(0, coordinator_epoch=4, version=version) == {0: ErrorCode.TRANSACTION_COORDINATOR_FENCED}


def test_from_version_2_on_a_marker_of_transaction_version_2_needs_a_newer_epoch(mark):
    """With transaction.version 2 every end has an epoch of its own: the same one comes too late."""
    assert mark(1, version=2, transaction_version=2) == {0: NONE}
    assert mark(0, version=2, transaction_version=2) == {0: ErrorCode.INVALID_PRODUCER_EPOCH}
    assert mark(3, version=2, transaction_version=2) == {0: NONE}


@VERSIONS
def test_markers_of_several_producers_are_answered_for_each(cluster, producer, version):
    topics = [WritableTxnMarkerTopic("t", [1])]
    markers = [WritableTxnMarker(each, 0, True, topics) for each in (producer.producer_id, 123_456_789)]
    answered = cluster.send(WriteTxnMarkersRequest(markers), version).markers
    assert {each.producer_id: each.topics[0].partitions[0].error_code for each in answered} == {
        producer.producer_id: NONE,
        123_456_789: NONE,
    }
