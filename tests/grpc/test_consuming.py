"""Streams of records, of a topic and of a group's members."""

from __future__ import annotations

import grpc
import pytest

from tests.support.grpc_client import EARLIEST, GrpcClient, pb
from tests.support.server_process import eventually


def test_a_topic_comes_from_its_first_record_and_goes_on(client: GrpcClient) -> None:
    client.create("whole-topic", 2)
    client.publish("whole-topic", b"a", b"b")
    client.publish("whole-topic", b"c", partition=1)
    with client.consume("whole-topic", start=EARLIEST) as stream:
        assert len(stream.next("assigned").partitions) == 2
        assert sorted(stream.values(3)) == [b"a", b"b", b"c"]
        client.publish("whole-topic", b"d")
        assert stream.values(1) == [b"d"]


def test_without_a_start_only_what_is_new_comes(client: GrpcClient) -> None:
    client.create("from-now")
    client.publish("from-now", b"old")
    with client.consume("from-now") as stream:
        assert [each.offset for each in stream.next("assigned").partitions] == [1]
        client.publish("from-now", b"new")
        assert stream.values(1) == [b"new"]


def test_partitions_begin_where_it_is_said_for_each(client: GrpcClient) -> None:
    client.create("some", 3)
    for partition in range(3):
        client.publish("some", *[b"%d-%d" % (partition, number) for number in range(3)], partition=partition)
    partitions = [
        pb.PartitionStart(partition=0, start=pb.Start(offset=2)),
        pb.PartitionStart(partition=2),
    ]
    with client.consume("some", partitions=partitions, start=EARLIEST) as stream:
        stream.next("assigned")
        assert sorted(stream.values(4)) == [b"0-2", b"2-0", b"2-1", b"2-2"]


def test_partitions_that_the_topic_gets_are_read_too(client: GrpcClient) -> None:
    client.create("grows")
    with client.consume("grows", start=EARLIEST) as stream:
        stream.next("assigned")
        client.AlterTopic(pb.AlterTopicRequest(name="grows", partitions=2))
        client.publish("grows", b"there", partition=1)
        assert stream.values(1) == [b"there"]


def test_records_that_are_gone_are_told_as_a_gap(client: GrpcClient) -> None:
    client.create("gaps")
    client.publish("gaps", b"a")
    with client.consume("gaps", start=pb.Start(offset=50)) as stream:
        stream.next("assigned")
        gap = stream.next("gap")
        assert (gap.offset, gap.next_offset) == (50, 1)


def test_the_stream_of_a_topic_that_is_deleted_ends(client: GrpcClient) -> None:
    client.create("deleted")
    with client.consume("deleted") as stream:
        stream.next("assigned")
        client.DeleteTopic(pb.DeleteTopicRequest(name="deleted"))
        with pytest.raises(grpc.RpcError) as ended:
            stream.values(1)
    assert ended.value.code() is grpc.StatusCode.NOT_FOUND


def test_a_group_goes_on_where_it_has_committed(client: GrpcClient) -> None:
    client.create("work")
    client.publish("work", b"1", b"2", b"3")
    with client.consume("work", group="workers", start=EARLIEST) as stream:
        assert [each.offset for each in stream.next("assigned").partitions] == [0]
        batch = stream.next("batch")
        assert batch.next_offset == 3
        stream.commit(7, "work", 0, 2)
        committed = stream.next("committed")
        assert (committed.id, list(committed.refused)) == (7, [])
    eventually(lambda: _state_of(client, "workers") == "Empty")
    with client.consume("work", group="workers", start=EARLIEST) as stream:
        assert [each.offset for each in stream.next("assigned").partitions] == [2]
        assert stream.values(1) == [b"3"]


def test_members_share_the_partitions(client: GrpcClient) -> None:
    client.create("shared", 4)
    with client.consume("shared", group="sharers") as first:
        assert len(first.next("assigned").partitions) == 4
        with client.consume("shared", group="sharers") as second:
            assert len(second.next("assigned").partitions) == 2
            assert len(first.next("assigned").partitions) == 2
        assert len(first.next("assigned").partitions) == 4


def test_a_commit_of_what_another_member_has_is_refused(client: GrpcClient) -> None:
    client.create("foreign", 1)
    with client.consume("foreign", group="foreigners") as stream:
        stream.next("assigned")
        stream.commit(1, "foreign", 5, 0)
        (refused,) = stream.next("committed").refused
        assert (refused.partition, refused.error.name) == (5, "STALE_MEMBER_EPOCH")


@pytest.mark.parametrize(
    "subscription",
    [
        {},
        {"topics": ["a", "b"]},
        {"topics": ["some"], "max_records": -1},
        {"topics": ["some"], "group": "g", "start": pb.Start(offset=4)},
        {"topics": ["some"], "group": "g", "partitions": [pb.PartitionStart(partition=0)]},
    ],
)
def test_what_makes_no_sense_is_an_invalid_argument(
    client: GrpcClient, subscription: dict[str, object]
) -> None:
    topics = subscription.pop("topics", [])
    with client.consume(*topics, **subscription) as stream, pytest.raises(grpc.RpcError) as refused:
        stream.values(1)
    assert refused.value.code() is grpc.StatusCode.INVALID_ARGUMENT


def test_a_commit_without_a_group_is_refused(client: GrpcClient) -> None:
    client.create("groupless")
    with client.consume("groupless") as stream:
        stream.next("assigned")
        stream.commit(1, "groupless", 0, 0)
        with pytest.raises(grpc.RpcError) as refused:
            stream.values(1)
    assert refused.value.code() is grpc.StatusCode.INVALID_ARGUMENT


def _state_of(client: GrpcClient, group: str) -> str:
    return str(client.DescribeGroup(pb.DescribeGroupRequest(group=group)).state)
