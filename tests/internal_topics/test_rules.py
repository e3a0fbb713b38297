"""What may be done to internal topics: as on Apache Kafka, but that they cannot be changed."""

from __future__ import annotations

import pytest

from kbroker.config.resources import ResourceType
from kbroker.protocol.errors import ErrorCode
from kbroker.protocol.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from kbroker.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from kbroker.protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from kbroker.protocol.messages.delete_topics import DeleteTopicsRequest
from kbroker.protocol.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from kbroker.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from kbroker.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from kbroker.protocol.records import build_batch
from kbroker.protocol.records.codec import Record
from kbroker.storage.errors import OffsetOutOfRange
from tests.handlers.committed_offsets import commit
from tests.transactions.broker_support import TransactionalClient, produce_error

from .reader import OFFSETS, TRANSACTIONS, Reader, fetch

each_topic = pytest.mark.parametrize("name", [OFFSETS, TRANSACTIONS])


def metadata(cluster, name, *, create=False):
    asked = MetadataRequest([MetadataRequestTopic(name=name)], allow_auto_topic_creation=create)
    (topic,) = cluster.send(asked, 12).topics
    return topic


def create(cluster, name):
    (topic,) = cluster.send(CreateTopicsRequest([CreatableTopic(name, 1, 1)]), 5).topics
    return topic.error_code


@pytest.fixture
def made(cluster):
    for name in (OFFSETS, TRANSACTIONS):
        assert metadata(cluster, name, create=True).error_code == ErrorCode.NONE


@each_topic
def test_it_is_not_there_before_anybody_asks_for_it(cluster, name):
    topic = metadata(cluster, name)
    assert (topic.error_code, topic.is_internal) == (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, True)


@each_topic
def test_metadata_lists_it_as_internal(cluster, made, name):
    topic = metadata(cluster, name)
    assert (topic.error_code, topic.is_internal, len(topic.partitions)) == (0, True, 50)
    assert name in [each.name for each in cluster.send(MetadataRequest(None), 12).topics]


def test_it_comes_with_the_first_group_and_stays(cluster):
    cluster.create("t")
    commit(cluster, 9, "t")
    topic_id = metadata(cluster, OFFSETS).topic_id
    assert any(topic_id)
    cluster.broker = cluster.start({"node.id": "1"})
    assert metadata(cluster, OFFSETS).topic_id == topic_id


def test_it_comes_with_the_first_transactional_id(cluster):
    TransactionalClient(cluster).init()
    assert metadata(cluster, TRANSACTIONS).error_code == ErrorCode.NONE


@each_topic
def test_it_exists_for_who_would_create_it_even_before_it_does(cluster, name):
    assert create(cluster, name) == ErrorCode.TOPIC_ALREADY_EXISTS
    metadata(cluster, name, create=True)
    assert create(cluster, name) == ErrorCode.TOPIC_ALREADY_EXISTS


def test_nobody_may_create_that_of_share_groups(cluster):
    assert create(cluster, "__share_group_state") == ErrorCode.INVALID_TOPIC_EXCEPTION


@each_topic
def test_it_cannot_be_deleted(cluster, made, name):
    (answer,) = cluster.send(DeleteTopicsRequest(topic_names=[name]), 5).responses
    assert answer.error_code == ErrorCode.TOPIC_DELETION_DISABLED
    assert metadata(cluster, name).error_code == ErrorCode.NONE


@each_topic
@pytest.mark.parametrize("validate_only", [False, True])
def test_it_cannot_grow(cluster, made, name, validate_only):
    request = CreatePartitionsRequest([CreatePartitionsTopic(name, 51, None)], 1000, validate_only)
    (answer,) = cluster.send(request, 3).results
    assert answer.error_code == ErrorCode.INVALID_TOPIC_EXCEPTION


@each_topic
def test_its_records_cannot_be_deleted(cluster, made, name):
    request = DeleteRecordsRequest([DeleteRecordsTopic(name, [DeleteRecordsPartition(0, 0)])])
    assert cluster.send(request, 2).topics[0].partitions[0].error_code == ErrorCode.INVALID_TOPIC_EXCEPTION


@each_topic
def test_nobody_writes_it(cluster, made, name):
    data = PartitionProduceData(0, build_batch([Record(cluster.now_ms, b"key", b"value")]))
    request = ProduceRequest(
        None, acks=-1, timeout_ms=1000, topic_data=[TopicProduceData(name=name, partition_data=[data])]
    )
    assert produce_error(cluster.send(request, 9)) == ErrorCode.INVALID_TOPIC_EXCEPTION


@each_topic
def test_nobody_writes_it_in_a_transaction(cluster, made, name):
    client = TransactionalClient(cluster)
    client.init()
    assert produce_error(client.produce(name, b"value")) == ErrorCode.INVALID_TOPIC_EXCEPTION
    (topic,) = client.add(name).results_by_topic_v3_and_below
    (answer,) = topic.results_by_partition
    assert answer.partition_error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED
    (read,) = Reader(cluster, TRANSACTIONS).read()
    assert read.value.transaction_status == 0


def test_its_configs_are_kafkas(cluster, made):
    def configs(name):
        asked = DescribeConfigsRequest([DescribeConfigsResource(ResourceType.TOPIC, name, None)])
        (answer,) = cluster.send(asked, 4).results
        assert answer.error_code == 0
        return {config.name: config.value for config in answer.configs if config.config_source == 1}

    assert configs(OFFSETS) == {
        "cleanup.policy": "compact",
        "compression.type": "producer",
        "segment.bytes": "104857600",
    }
    assert configs(TRANSACTIONS) == {
        "cleanup.policy": "compact",
        "compression.type": "uncompressed",
        "min.insync.replicas": "1",
        "segment.bytes": "104857600",
        "unclean.leader.election.enable": "false",
    }


@pytest.mark.parametrize("version", [1, 3])
def test_it_is_read_in_old_formats_too(cluster, version):
    cluster.create("t")
    commit(cluster, 9, "t")
    reader = Reader(cluster)
    partition = next(
        each for each in reader.positions if fetch(cluster, OFFSETS, each, reader.positions[each]).records
    )
    answer = fetch(cluster, OFFSETS, partition, reader.positions[partition], version=version)
    assert (answer.error_code, bool(answer.records)) == (0, True)


def test_a_log_refuses_offsets_that_it_does_not_have(cluster, made):
    log = cluster.broker.find_log(OFFSETS, 0)
    with pytest.raises(OffsetOutOfRange):
        log.read(0, 1000)
