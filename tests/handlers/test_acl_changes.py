"""What an ACL allowed is refused as soon as the ACL is gone, whatever a connection remembers or waits for."""

from __future__ import annotations

from typing import Any

import pytest

from kbroker.pending import Pending
from kbroker.protocol.codec import encode_bytes
from kbroker.protocol.errors import ErrorCode
from kbroker.protocol.headers import RequestHeader, request_header_version
from kbroker.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from kbroker.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from kbroker.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kbroker.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from kbroker.protocol.records import build_batch
from kbroker.protocol.records.codec import Record
from kbroker.security.acls import AclOperation, PatternType, Permission

from .conftest import NOW_MS, Cluster
from .some_acls import ALICE, AUTHORIZED, GROUP, TOPIC, allow, take_back

READ, WRITE = AclOperation.READ, AclOperation.WRITE
REFUSED = ErrorCode.TOPIC_AUTHORIZATION_FAILED


@pytest.fixture
def settings() -> dict[str, str]:
    return AUTHORIZED


@pytest.fixture(autouse=True)
def alice(cluster: Cluster) -> None:
    cluster.create("t")
    cluster.session().principal = ALICE


def produce_request() -> ProduceRequest:
    records = memoryview(bytearray(build_batch([Record(NOW_MS, None, b"x")])))
    return ProduceRequest(
        None, -1, 1000, [TopicProduceData("t", partition_data=[PartitionProduceData(0, records)])]
    )


def produce(cluster: Cluster) -> int:
    answer = cluster.send(produce_request(), 9)
    code: int = answer.responses[0].partition_responses[0].error_code
    return code


def has_lanes(cluster: Cluster) -> bool:
    return bool(cluster.session()._lanes)


def test_a_repeated_produce_is_refused(cluster: Cluster) -> None:
    acl = allow(cluster, WRITE, TOPIC, "t")
    assert [produce(cluster) for _ in range(3)] == [0, 0, 0]
    assert has_lanes(cluster)
    take_back(cluster, acl)
    assert not has_lanes(cluster)
    assert [produce(cluster) for _ in range(3)] == [REFUSED] * 3
    assert cluster.end_offset("t") == 3
    allow(cluster, AclOperation.ALL, TOPIC, "t", pattern=PatternType.PREFIXED)
    assert produce(cluster) == 0


def test_a_repeated_produce_is_refused_when_it_is_denied(cluster: Cluster) -> None:
    allow(cluster, WRITE, TOPIC, "t")
    assert [produce(cluster) for _ in range(3)] == [0, 0, 0]
    allow(cluster, WRITE, TOPIC, "t", permission=Permission.DENY)
    assert produce(cluster) == REFUSED


def test_requests_that_come_together_are_refused(cluster: Cluster) -> None:
    acl = allow(cluster, WRITE, TOPIC, "t")
    header = encode_bytes(RequestHeader(0, 9, 7, "test"), request_header_version(0, 9))
    frame = header + encode_bytes(produce_request(), 9)
    together = memoryview(bytearray((len(frame).to_bytes(4, "big") + frame) * 3))
    session = cluster.session()
    session.execute(memoryview(bytearray(frame)), NOW_MS)
    assert session.execute_run(together, NOW_MS).requests == 3
    take_back(cluster, acl)
    assert session.execute_run(together, NOW_MS).requests == 0
    assert produce(cluster) == REFUSED


def commit(cluster: Cluster) -> int:
    partition = OffsetCommitRequestPartition(0, 1, committed_metadata="")
    answer = cluster.send(
        OffsetCommitRequest("g", topics=[OffsetCommitRequestTopic("t", partitions=[partition])]), 8
    )
    code: int = answer.topics[0].partitions[0].error_code
    return code


@pytest.mark.parametrize(
    ("kind", "name", "code"), [(TOPIC, "t", REFUSED), (GROUP, "g", ErrorCode.GROUP_AUTHORIZATION_FAILED)]
)
def test_a_repeated_commit_is_refused(cluster: Cluster, kind: Any, name: str, code: ErrorCode) -> None:
    acls = {TOPIC: allow(cluster, READ, TOPIC, "t"), GROUP: allow(cluster, READ, GROUP, "g")}
    assert {commit(cluster) for _ in range(40)} == {0}
    assert has_lanes(cluster)
    take_back(cluster, acls[kind])
    assert {commit(cluster) for _ in range(40)} == {code}


@pytest.mark.parametrize("kind", [TOPIC, GROUP])
def test_nothing_is_remembered_of_a_refused_commit(cluster: Cluster, kind: Any) -> None:
    """A second that looks the same is refused, too."""
    allow(cluster, READ, kind, "t" if kind == TOPIC else "g")
    assert 0 not in {commit(cluster) for _ in range(40)}


def fetch_request(
    session_id: int = 0, epoch: int = -1, topics: bool = True, wait_ms: int = 0
) -> FetchRequest:
    asked = [FetchTopic("t", partitions=[FetchPartition(0, fetch_offset=0, partition_max_bytes=1000)])]
    return FetchRequest(
        max_wait_ms=wait_ms,
        min_bytes=1,
        max_bytes=1000,
        session_id=session_id,
        session_epoch=epoch,
        topics=asked if topics else [],
    )


def test_a_fetch_session_is_refused(cluster: Cluster) -> None:
    acl = allow(cluster, READ, TOPIC, "t")
    cluster.produce("t", NOW_MS)
    first = cluster.send(fetch_request(epoch=0), 12)
    assert first.session_id
    take_back(cluster, acl)
    second = cluster.send(fetch_request(first.session_id, 1, topics=False), 12)
    (partition,) = second.responses[0].partitions
    assert (partition.error_code, partition.records) == (REFUSED, b"")


@pytest.mark.parametrize("ends_with", ["records", "time"])
def test_a_fetch_that_waits_brings_nothing_that_comes_later(cluster: Cluster, ends_with: str) -> None:
    acl = allow(cluster, READ, TOPIC, "t")
    waiting = cluster.send(fetch_request(wait_ms=500), 12)
    assert isinstance(waiting, Pending)
    assert not waiting.done
    take_back(cluster, acl)
    if ends_with == "records":
        cluster.produce("t", NOW_MS)
    while cluster.scheduler.waiting and not waiting.done:
        cluster.scheduler.waiting[-1]()
    (partition,) = waiting.result().responses[0].partitions
    assert (partition.error_code, partition.records) == (REFUSED, b"")


def test_a_regular_expression_finds_what_the_member_may_see(cluster: Cluster) -> None:
    mine = cluster.create("mine")
    cluster.create("theirs")
    allow(cluster, READ, GROUP, "g")
    allow(cluster, AclOperation.DESCRIBE, TOPIC, "mine", pattern=PatternType.PREFIXED)

    def beat(epoch: int, **more: Any) -> Any:
        return cluster.send(
            ConsumerGroupHeartbeatRequest(
                "g", "a-member-of-22-letters", epoch, rebalance_timeout_ms=1000, topic_partitions=[], **more
            ),
            1,
        )

    joined = beat(0, subscribed_topic_regex="mine.*|theirs.*")
    assert [each.topic_id for each in joined.assignment.topic_partitions] == [mine.topic_id]
    also_mine = cluster.create("mine-too")
    cluster.create("theirs-too")
    again = beat(0, subscribed_topic_regex="mine.*|theirs.*")
    assert {each.topic_id for each in again.assignment.topic_partitions} <= {
        mine.topic_id,
        also_mine.topic_id,
    }
