from __future__ import annotations

import pytest

from kbroker.protocol.errors import ErrorCode
from kbroker.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from kbroker.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)

from .transactional_producer import TransactionalProducer

VERSIONS = pytest.mark.parametrize("version", range(6))
NONE, UNKNOWN = ErrorCode.NONE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


@pytest.fixture
def producer(cluster, request):
    cluster.create("t", partitions=2)
    producer = TransactionalProducer(cluster, request.node.name)
    producer.init()
    return producer


@pytest.fixture
def group(request):
    return f"group of {request.node.name}"


@pytest.fixture
def commit(producer, group):
    """Partition -> error code of committing offset 5."""

    def commit(*partitions, version, topic="t", **fields):
        asked = [
            TxnOffsetCommitRequestPartition(each, 5, committed_metadata="m") for each in partitions or (0,)
        ]
        request = TxnOffsetCommitRequest(
            **{
                "transactional_id": producer.transactional_id,
                "group_id": group,
                "producer_id": producer.producer_id,
                "producer_epoch": producer.epoch,
                **fields,
            },
            topics=[TxnOffsetCommitRequestTopic(topic, asked)],
        )
        (answered,) = producer.cluster.send(request, version).topics
        return {each.partition_index: each.error_code for each in answered.partitions}

    return commit


@pytest.fixture
def committed(cluster, group):
    """Error code and offset that a reader of stable offsets gets."""

    def committed():
        topics = [OffsetFetchRequestTopics("t", partition_indexes=[0])]
        request = OffsetFetchRequest(
            groups=[OffsetFetchRequestGroup(group, topics=topics)], require_stable=True
        )
        (answered,) = cluster.send(request, 8).groups[0].topics
        return answered.partitions[0].error_code, answered.partitions[0].committed_offset

    return committed


@VERSIONS
def test_offsets_count_when_the_transaction_commits(producer, commit, committed, group, version):
    producer.add_offsets(group)
    assert commit(version=version) == {0: NONE}
    assert committed() == (ErrorCode.UNSTABLE_OFFSET_COMMIT, -1)
    producer.end()
    assert committed() == (NONE, 5)


@VERSIONS
def test_offsets_of_an_aborted_transaction_do_not_count(producer, commit, committed, group, version):
    producer.add_offsets(group)
    commit(version=version)
    producer.end(commit=False)
    assert committed() == (NONE, -1)


@VERSIONS
def test_before_version_5_the_group_must_have_been_added(producer, commit, version):
    refused = {4: ErrorCode.TRANSACTION_ABORTABLE, 5: NONE}.get(version, ErrorCode.INVALID_TXN_STATE)
    assert commit(version=version) == {0: refused}
    assert list(producer.partitions) == (["__consumer_offsets"] if version == 5 else [])


@VERSIONS
def test_partitions_that_are_not_there_are_refused_alone(producer, commit, group, version):
    producer.add_offsets(group)
    assert commit(0, 9, version=version) == {0: NONE, 9: UNKNOWN}
    assert commit(version=version, topic="missing") == {0: UNKNOWN}


@VERSIONS
def test_a_commit_needs_a_group(producer, commit, group, version):
    producer.add_offsets(group)
    assert commit(version=version, group_id="") == {0: ErrorCode.INVALID_GROUP_ID}


@VERSIONS
def test_only_the_producer_of_the_transaction_commits_offsets_in_it(producer, commit, group, version):
    producer.add_offsets(group)
    for fields, code in (
        ({"transactional_id": "unknown"}, ErrorCode.INVALID_PRODUCER_ID_MAPPING),
        ({"producer_id": 99_999_999}, ErrorCode.INVALID_PRODUCER_ID_MAPPING),
        ({"producer_epoch": 9}, ErrorCode.INVALID_PRODUCER_EPOCH),
    ):
        assert commit(version=version, **fields) == {0: code}, fields


@pytest.mark.parametrize("version", [3, 4, 5])
def test_from_version_3_on_a_member_commits_for_its_generation(producer, commit, group, version):
    producer.add_offsets(group)
    stranger = {"member_id": "nobody", "generation_id": 3}
    assert commit(version=version, **stranger) == {0: ErrorCode.ILLEGAL_GENERATION}
    commit(version=version)
    assert commit(version=version, **stranger) == {0: ErrorCode.UNKNOWN_MEMBER_ID}
