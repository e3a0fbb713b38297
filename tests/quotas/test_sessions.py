"""Requests of clients with quotas, through a session: what the answers say, and how long connections wait."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from kbroker.protocol.codec import encode_bytes
from kbroker.protocol.errors import ErrorCode
from kbroker.protocol.headers import RequestHeader
from kbroker.protocol.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from kbroker.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from kbroker.protocol.messages.delete_topics import DeleteTopicsRequest
from kbroker.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from kbroker.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from kbroker.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kbroker.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from kbroker.protocol.records import build_batch
from kbroker.protocol.records.codec import Record
from kbroker.requests import session as session_module
from kbroker.requests.apis import BY_KEY
from kbroker.requests.lanes import NO_RUN
from kbroker.requests.request import parse
from tests.handlers.conftest import NOW_MS, Cluster
from tests.handlers.quota_requests import alter, remove

ANONYMOUS = {"user": "ANONYMOUS"}
CLIENT = {"client-id": "test"}


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    cluster = Cluster({"node.id": "1"})
    cluster.create("t")
    yield cluster
    cluster.catalog.close()


@pytest.fixture
def waits(cluster: Cluster) -> list[int]:
    """What the connection was told to wait, in milliseconds."""
    waits: list[int] = []
    cluster.session().mute = waits.append
    return waits


def produce(size_bytes: int = 5000, acks: int = -1) -> ProduceRequest:
    batch = memoryview(build_batch([Record(NOW_MS, None, bytes(size_bytes))]))
    data = [TopicProduceData("t", partition_data=[PartitionProduceData(0, batch)])]
    return ProduceRequest(acks=acks, timeout_ms=1000, topic_data=data)


def fetch(**fields: int) -> FetchRequest:
    partitions = [FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1 << 20)]
    return FetchRequest(max_wait_ms=0, topics=[FetchTopic("t", partitions=partitions)], **fields)


@pytest.mark.parametrize("version", range(3, 13))
def test_a_produce_above_the_quota_is_stored_and_followed_by_a_wait(
    cluster: Cluster, waits: list[int], version: int
) -> None:
    alter(cluster, ANONYMOUS, producer_byte_rate=100)
    version = max(version, 3)  # those before carry message sets
    answer = cluster.send(produce(), version)
    assert answer.responses[0].partition_responses[0].error_code == ErrorCode.NONE
    assert cluster.end_offset("t") == 1
    assert waits == [answer.throttle_time_ms]
    assert 40_000 < answer.throttle_time_ms < 42_000  # about 5,100 bytes are 51 seconds' worth


def test_a_produce_without_an_answer_is_followed_by_a_wait(cluster: Cluster, waits: list[int]) -> None:
    alter(cluster, ANONYMOUS, producer_byte_rate=100)
    assert cluster.send(produce(acks=0), 9) is None
    (wait_ms,) = waits
    assert 40_000 < wait_ms < 42_000


def test_a_fetch_above_the_quota_gets_an_empty_answer_and_all_of_it_after_the_wait(
    cluster: Cluster, waits: list[int]
) -> None:
    cluster.produce("t", *[NOW_MS] * 10)
    alter(cluster, ANONYMOUS, consumer_byte_rate=40)
    first = cluster.send(fetch(), 12)
    assert (first.throttle_time_ms, waits) == (0, [])
    second = cluster.send(fetch(), 12)
    assert second.responses == []
    assert (second.session_id, second.error_code) == (0, ErrorCode.NONE)
    assert waits == [second.throttle_time_ms]
    cluster.now_ms += second.throttle_time_ms
    while (third := cluster.send(fetch(), 12)).throttle_time_ms:
        cluster.now_ms += third.throttle_time_ms
    assert cluster.now_ms <= NOW_MS + 13_000
    assert third.responses[0].partitions[0].records == first.responses[0].partitions[0].records


@pytest.mark.parametrize("version", range(19))
def test_a_fetch_of_every_version_is_throttled(cluster: Cluster, waits: list[int], version: int) -> None:
    cluster.produce("t", *[NOW_MS] * 10)
    alter(cluster, ANONYMOUS, consumer_byte_rate=10)
    request = fetch()
    if version >= 13:
        topic = cluster.broker.topics.get("t")
        assert topic is not None
        request.topics[0].topic, request.topics[0].topic_id = "", topic.topic_id
    answer = cluster.send(request, version)
    assert answer.responses == []
    assert len(waits) == 1
    assert answer.throttle_time_ms == (waits[0] if version else 0)  # the first has no place for it


def test_a_produce_in_turns_without_an_answer_is_followed_by_a_wait(
    cluster: Cluster, waits: list[int]
) -> None:
    """One of many partitions is executed in turns with others."""
    cluster.create("many", 200)
    alter(cluster, ANONYMOUS, producer_byte_rate=100)
    batch = build_batch([Record(NOW_MS, None, b"value")])
    data = [PartitionProduceData(number, memoryview(bytearray(batch))) for number in range(200)]
    request = ProduceRequest(
        acks=0, timeout_ms=1000, topic_data=[TopicProduceData("many", partition_data=data)]
    )
    assert cluster.send(request, 9) is None
    assert len(waits) == 1
    assert waits[0] > 60_000


def test_a_request_that_is_decoded_in_turns_is_measured(
    cluster: Cluster, waits: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kbroker.requests.long_requests._AT_ONCE_SECONDS", 0)
    alter(cluster, CLIENT, request_percentage=1e-7)
    topics = [MetadataRequestTopic(name=f"topic-{number}") for number in range(1000)]
    answer = cluster.send(MetadataRequest(topics, allow_auto_topic_creation=False), 9)
    assert answer.throttle_time_ms == 1000
    assert waits == [1000]


def test_a_fetch_session_goes_on_after_a_wait(cluster: Cluster, waits: list[int]) -> None:
    cluster.produce("t", *[NOW_MS] * 10)
    alter(cluster, ANONYMOUS, consumer_byte_rate=40)
    begun = cluster.send(fetch(session_epoch=0), 12)
    assert begun.session_id
    throttled = cluster.send(FetchRequest(max_wait_ms=0, session_id=begun.session_id, session_epoch=1), 12)
    assert (throttled.session_id, throttled.responses) == (begun.session_id, [])
    assert waits == [throttled.throttle_time_ms]
    cluster.now_ms += 11_000
    again = cluster.send(FetchRequest(max_wait_ms=0, session_id=begun.session_id, session_epoch=2), 12)
    assert again.responses[0].partitions[0].records


def test_a_session_that_a_throttled_fetch_would_have_begun_does_not_exist(
    cluster: Cluster, waits: list[int]
) -> None:
    cluster.produce("t", *[NOW_MS] * 10)
    alter(cluster, ANONYMOUS, consumer_byte_rate=40)
    cluster.send(fetch(), 12)
    throttled = cluster.send(fetch(session_epoch=0), 12)
    assert (throttled.session_id, len(waits)) == (0, 1)
    assert len(cluster.broker.fetch_sessions) == 0


def test_no_more_is_read_than_the_quota_could_ever_let_out(cluster: Cluster) -> None:
    for _ in range(10):
        cluster.produce("t", NOW_MS)
    alter(cluster, ANONYMOUS, consumer_byte_rate=35)
    answer = cluster.send(fetch(), 12)
    assert 0 < len(answer.responses[0].partitions[0].records) <= 240


def test_the_time_of_every_request_counts_for_request_percentage(cluster: Cluster, waits: list[int]) -> None:
    alter(cluster, CLIENT, request_percentage=1e-7)
    for api_key, version in ((3, 12), (18, 3), (60, 1)):
        request = BY_KEY[api_key]
        answer = cluster.send(_empty(request.name), version)
        assert answer.throttle_time_ms == 1000  # a window, the most that a request's time can cost
    assert waits == [1000, 1000, 1000]


def _empty(name: str) -> object:
    from kbroker.protocol.messages import request_type

    key = next(api.key for api in BY_KEY.values() if api.name == name)
    return request_type(key)()


def test_a_client_of_another_name_is_not_throttled(cluster: Cluster, waits: list[int]) -> None:
    alter(cluster, {"user": "bob"}, producer_byte_rate=1, request_percentage=1e-7)
    alter(cluster, {"client-id": "other"}, producer_byte_rate=1)
    assert cluster.send(produce(), 9).throttle_time_ms == 0
    assert waits == []


def test_a_quota_holds_for_connections_that_are_open_and_ends_with_its_removal(
    cluster: Cluster, waits: list[int]
) -> None:
    for expected in (0, 1, 1):
        if expected and not waits:
            alter(cluster, CLIENT, producer_byte_rate=1)
        cluster.send(produce(), 9)
        assert bool(waits) == bool(expected)
    remove(cluster, CLIENT, "producer_byte_rate")
    waits.clear()
    assert cluster.send(produce(), 9).throttle_time_ms == 0
    assert waits == []


def test_requests_that_came_together_are_taken_one_by_one_under_a_quota(
    cluster: Cluster, waits: list[int]
) -> None:
    def together() -> memoryview:
        frame = encode_bytes(RequestHeader(0, 9, 7, "test"), 2) + encode_bytes(produce(10), 9)
        return memoryview(bytearray((len(frame).to_bytes(4) + frame) * 2))

    cluster.send(produce(10), 9)
    assert cluster.session().execute_run(together(), NOW_MS).requests == 2
    alter(cluster, CLIENT, producer_byte_rate=10_000)
    assert cluster.session().execute_run(together(), NOW_MS) is NO_RUN
    remove(cluster, CLIENT, "producer_byte_rate")
    assert cluster.session().execute_run(together(), NOW_MS).requests == 2


def test_repeated_produces_are_not_decoded_until_the_quota_is_used_up(
    cluster: Cluster, waits: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    decoded = []

    def counted(*arguments: Any) -> Any:
        decoded.append(arguments)
        return parse(*arguments)

    alter(cluster, CLIENT, producer_byte_rate=1000, request_percentage=100)
    monkeypatch.setattr(session_module, "parse", counted)
    sent = 0
    while not waits:
        answer = cluster.send(produce(50), 9)
        assert answer.responses[0].partition_responses[0].error_code == ErrorCode.NONE
        sent += 1
    assert len(decoded) == 2  # the first, and the one after which there is a wait
    assert answer.throttle_time_ms == waits[0]
    assert cluster.end_offset("t") == sent
    assert 40 < sent < 80  # ten seconds' worth


def test_a_repeated_commit_under_a_quota_remembers_no_wait(cluster: Cluster, waits: list[int]) -> None:
    def commit(offset: int) -> int:
        partition = OffsetCommitRequestPartition(partition_index=0, committed_offset=offset)
        topics = [OffsetCommitRequestTopic(name="t", partitions=[partition])]
        answer = cluster.send(OffsetCommitRequest(group_id="g", topics=topics), 8)
        assert answer.topics[0].partitions[0].error_code == ErrorCode.NONE
        wait_ms: int = answer.throttle_time_ms
        return wait_ms

    alter(cluster, CLIENT, request_percentage=1e-7)
    assert [commit(offset) for offset in range(5)] == [1000] * 5
    alter(cluster, CLIENT, request_percentage=1e9)
    assert [commit(offset) for offset in range(5)] == [0] * 5
    assert len(waits) == 6  # the request that altered the quota had one, too


@pytest.mark.parametrize("version", range(2, 8))
def test_topics_above_the_quota_are_refused_by_versions_that_know_how(
    cluster: Cluster, waits: list[int], version: int
) -> None:
    alter(cluster, ANONYMOUS, controller_mutation_rate=1)
    topics = [CreatableTopic("a", 21, 1), CreatableTopic("b", 1, 1)]
    answer = cluster.send(CreateTopicsRequest(topics, 1000), version)
    codes = {topic.name: topic.error_code for topic in answer.topics}
    if version < 6:
        assert codes == {"a": ErrorCode.NONE, "b": ErrorCode.NONE}
        assert waits == [11_000]
    else:
        assert codes == {"a": ErrorCode.NONE, "b": ErrorCode.THROTTLING_QUOTA_EXCEEDED}
        assert waits == [10_000]
    assert answer.throttle_time_ms == waits[0]


@pytest.mark.parametrize(("version", "code"), [(4, ErrorCode.NONE), (5, ErrorCode.THROTTLING_QUOTA_EXCEEDED)])
def test_deletions_count_their_partitions(
    cluster: Cluster, waits: list[int], version: int, code: ErrorCode
) -> None:
    cluster.create("big", 30)
    alter(cluster, ANONYMOUS, controller_mutation_rate=1)
    request = DeleteTopicsRequest(topic_names=["big", "t"], timeout_ms=1000)
    answer = cluster.send(request, version)
    assert {each.name: each.error_code for each in answer.responses} == {"big": ErrorCode.NONE, "t": code}
    assert len(waits) == 1


@pytest.mark.parametrize(("version", "code"), [(2, ErrorCode.NONE), (3, ErrorCode.THROTTLING_QUOTA_EXCEEDED)])
def test_new_partitions_count(cluster: Cluster, waits: list[int], version: int, code: ErrorCode) -> None:
    cluster.create("other")
    alter(cluster, ANONYMOUS, controller_mutation_rate=1)
    topics = [CreatePartitionsTopic("t", 30, None), CreatePartitionsTopic("other", 2, None)]
    answer = cluster.send(CreatePartitionsRequest(topics, 1000), version)
    assert {each.name: each.error_code for each in answer.results} == {"t": ErrorCode.NONE, "other": code}
    assert len(waits) == 1


def test_topics_that_a_look_would_create_are_not_created_above_the_quota(
    cluster: Cluster, waits: list[int]
) -> None:
    alter(cluster, ANONYMOUS, controller_mutation_rate=1)
    cluster.send(CreateTopicsRequest([CreatableTopic("a", 21, 1)], 1000), 7)
    answer = cluster.send(MetadataRequest([MetadataRequestTopic(name="new")]), 9)
    assert answer.topics[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert cluster.broker.topics.get("new") is None
    assert waits == []
