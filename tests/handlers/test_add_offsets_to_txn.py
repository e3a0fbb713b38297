from __future__ import annotations

import pytest

from kbroker.protocol.errors import ErrorCode

from .transactional_producer import TransactionalProducer

VERSIONS = pytest.mark.parametrize("version", range(5))


@pytest.fixture
def producer(cluster, request):
    producer = TransactionalProducer(cluster, request.node.name)
    producer.init()
    return producer


@VERSIONS
def test_a_group_becomes_part_of_the_transaction_as_its_partition_of_the_offsets_topic(producer, version):
    assert producer.add_offsets("group", version) == ErrorCode.NONE
    assert producer.describe().transaction_state == "Ongoing"
    assert list(producer.partitions) == ["__consumer_offsets"]
    producer.add_offsets("group", version)
    assert len(producer.partitions["__consumer_offsets"]) == 1


@VERSIONS
def test_only_the_producer_of_a_transactional_id_adds_to_its_transaction(producer, version):
    fenced = ErrorCode.PRODUCER_FENCED if version >= 2 else ErrorCode.INVALID_PRODUCER_EPOCH
    for fields, code in (
        ({"producer_id": 99_999_999}, ErrorCode.INVALID_PRODUCER_ID_MAPPING),
        ({"transactional_id": "unknown"}, ErrorCode.INVALID_PRODUCER_ID_MAPPING),
        ({"producer_epoch": 7}, fenced),
        ({"transactional_id": ""}, ErrorCode.INVALID_REQUEST),
    ):
        assert producer.add_offsets("group", version, **fields) == code, fields
    assert producer.describe().transaction_state == "Empty"


class TestWithOnePartitionOfOffsets:
    @pytest.fixture
    def settings(self):
        return {"node.id": "1", "offsets.topic.num.partitions": "1"}

    def test_all_groups_are_in_it(self, producer):
        producer.add_offsets("group")
        producer.add_offsets("another")
        assert producer.partitions == {"__consumer_offsets": [0]}
