"""Topics and groups over gRPC."""

from __future__ import annotations

import grpc
import pytest

from tests.support.grpc_client import GrpcClient, pb


def test_a_topic_is_created_described_altered_and_deleted(client: GrpcClient) -> None:
    made = client.CreateTopic(
        pb.CreateTopicRequest(name="life", partitions=2, configs={"retention.ms": "60000"})
    )
    assert (made.name, made.partitions, made.replication_factor) == ("life", 2, 1)
    assert dict(made.configs) == {"retention.ms": "60000"}
    altered = client.AlterTopic(
        pb.AlterTopicRequest(
            name="life", set_configs={"segment.bytes": "1048576"}, reset_configs=["retention.ms"]
        )
    )
    assert dict(altered.configs) == {"segment.bytes": "1048576"}
    assert client.AlterTopic(pb.AlterTopicRequest(name="life", partitions=3)).partitions == 3
    client.publish("life", b"a", b"b", partition=2)
    found = client.DescribePartitions(pb.DescribePartitionsRequest(topic="life")).partitions
    assert [(each.partition, each.high_watermark) for each in found] == [(0, 0), (1, 0), (2, 2)]
    assert client.DeleteTopic(pb.DeleteTopicRequest(name="life")).id == made.id
    with pytest.raises(grpc.RpcError) as gone:
        client.DescribeTopic(pb.DescribeTopicRequest(name="life"))
    assert gone.value.code() is grpc.StatusCode.NOT_FOUND


def test_a_topic_that_is_there_is_not_created_again(client: GrpcClient) -> None:
    client.create("once")
    with pytest.raises(grpc.RpcError) as refused:
        client.create("once")
    assert refused.value.code() is grpc.StatusCode.ALREADY_EXISTS


def test_a_topic_that_is_only_looked_at_is_not_created(client: GrpcClient) -> None:
    request = pb.CreateTopicRequest(name="maybe", partitions=5, validate_only=True)
    assert client.CreateTopic(request).partitions == 5
    assert not client.ListTopics(pb.ListTopicsRequest(prefix="maybe")).topics


def test_topics_are_listed_page_by_page(client: GrpcClient) -> None:
    for number in range(5):
        client.create(f"page-{number}")
    first = client.ListTopics(pb.ListTopicsRequest(prefix="page-", limit=3))
    assert ([each.name for each in first.topics], first.next) == (["page-0", "page-1", "page-2"], "page-2")
    last = client.ListTopics(pb.ListTopicsRequest(prefix="page-", limit=3, after=first.next))
    assert ([each.name for each in last.topics], last.next) == (["page-3", "page-4"], "")


def test_offsets_of_a_group_are_committed_read_reset_and_deleted(client: GrpcClient) -> None:
    client.create("positions")
    client.publish("positions", *[b"v"] * 10)
    place = pb.Offset(topic="positions", partition=0, offset=4, metadata="m")
    unknown = pb.Offset(topic="positions", partition=9, offset=4)
    answer = client.CommitOffsets(pb.CommitOffsetsRequest(group="outside", offsets=[place, unknown]))
    assert [(each.partition, each.error.name) for each in answer.refused] == [
        (9, "UNKNOWN_TOPIC_OR_PARTITION")
    ]
    assert list(client.GetOffsets(pb.GetOffsetsRequest(group="outside")).offsets) == [place]
    lag = client.GetLag(pb.GetLagRequest(group="outside"))
    assert (lag.lag, lag.partitions[0].committed_offset) == (6, 4)
    (reset,) = client.ResetOffsets(
        pb.ResetOffsetsRequest(group="outside", to=pb.Start(position=pb.POSITION_EARLIEST))
    ).offsets
    assert (reset.before, reset.after) == (4, 0)
    assert "outside" in [each.id for each in client.ListGroups(pb.ListGroupsRequest()).groups]
    assert client.DescribeGroup(pb.DescribeGroupRequest(group="outside")).state == "Empty"
    where = pb.TopicPartition(topic="positions", partition=0)
    client.DeleteOffsets(pb.DeleteOffsetsRequest(group="outside", partitions=[where]))
    assert not client.GetOffsets(pb.GetOffsetsRequest(group="outside")).offsets


def test_a_group_is_deleted_when_nobody_is_in_it(client: GrpcClient) -> None:
    client.create("busy")
    with client.consume("busy", group="busy-group") as stream:
        stream.next("assigned")
        with pytest.raises(grpc.RpcError) as refused:
            client.DeleteGroup(pb.DeleteGroupRequest(group="busy-group"))
        assert refused.value.code() is grpc.StatusCode.FAILED_PRECONDITION
        (member,) = client.DescribeGroup(pb.DescribeGroupRequest(group="busy-group")).members
        assert (member.client_id, list(member.topics)) == ("grpc", ["busy"])
    place = pb.Offset(topic="busy", partition=0, offset=0)
    client.CommitOffsets(pb.CommitOffsetsRequest(group="idle-group", offsets=[place]))
    client.DeleteGroup(pb.DeleteGroupRequest(group="idle-group"))
    assert "idle-group" not in [each.id for each in client.ListGroups(pb.ListGroupsRequest()).groups]
