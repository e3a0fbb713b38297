"""What is counted of requests, at /metrics of a broker in a process of its own."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from kbroker.protocol.errors import ErrorCode
from kbroker.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from kbroker.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from kbroker.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kbroker.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from kbroker.protocol.records import Record, build_batch
from tests.support.http_client import HttpClient
from tests.support.metrics import scrape
from tests.support.raw_client import RawClient
from tests.support.raw_topics import create, produce
from tests.support.server_process import ServerProcess, eventually


@pytest.fixture
def server() -> Iterator[ServerProcess]:
    with ServerProcess("--in-memory", "--http-port", "0") as process:
        yield process


@pytest.fixture
def http(server: ServerProcess) -> Iterator[HttpClient]:
    with HttpClient(server.url) as client:
        yield client


@pytest.fixture
def client(server: ServerProcess) -> Iterator[RawClient]:
    with server.client() as client:
        yield client


def test_requests_of_lanes_count_like_others(http: HttpClient, client: RawClient) -> None:
    create(client, "t", 1)
    for _ in range(40):
        produce(client, "t", 0, b"value")
    found = scrape(http)
    assert found.of("kbroker_requests_total", api="Produce") == 40
    assert found.of("kbroker_request_seconds_count", api="Produce") == 40
    assert found.of("kbroker_request_seconds_bucket", api="Produce", le="+Inf") == 40
    assert found.of("kbroker_request_seconds_sum", api="Produce") > 0
    assert found.of("kbroker_request_bytes_total", api="Produce") > 40 * 70
    assert found.of("kbroker_response_bytes_total", api="Produce") > 40 * 40
    assert not found.labels("kbroker_request_errors_total")


def test_requests_that_came_together_count_one_by_one(http: HttpClient, client: RawClient) -> None:
    create(client, "t", 1)
    for _ in range(3):
        produce(client, "t", 0, b"value")
    frames = []
    for _ in range(20):
        data = PartitionProduceData(index=0, records=memoryview(build_batch([Record(0, None, b"value")])))
        asked = ProduceRequest(acks=-1, topic_data=[TopicProduceData("t", partition_data=[data])])
        frames.append(client.frame(asked, 9))
    client.socket.sendall(b"".join(frames))
    for _ in frames:
        client.receive()
    found = scrape(http)
    assert found.of("kbroker_requests_total", api="Produce") == 23
    assert found.of("kbroker_request_bytes_total", api="Produce") >= sum(map(len, frames)) - 4 * len(frames)


def test_errors_count_by_api_and_code_also_those_of_lazy_answers(http: HttpClient, client: RawClient) -> None:
    create(client, "t", 1)
    assert produce(client, "none", 0, b"value") == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    for partition in (5, 6):
        commit = OffsetCommitRequestPartition(partition, 1, committed_metadata="")
        client.ask(OffsetCommitRequest("g", topics=[OffsetCommitRequestTopic("t", partitions=[commit])]), 8)
    asked = MetadataRequest(topics=[MetadataRequestTopic(name="none")], allow_auto_topic_creation=False)
    client.ask(asked, 9)
    found = scrape(http)
    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION.name
    assert found.of("kbroker_request_errors_total", api="Produce", error=unknown) == 1
    assert found.of("kbroker_request_errors_total", api="OffsetCommit", error=unknown) == 2
    assert found.of("kbroker_request_errors_total", api="Metadata", error=unknown) == 1


def test_what_a_long_poll_waits_for_others_is_no_time_of_the_request(
    http: HttpClient, client: RawClient
) -> None:
    create(client, "t", 1)
    asked = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1 << 20)
    client.ask(FetchRequest(max_wait_ms=700, min_bytes=1, topics=[FetchTopic("t", partitions=[asked])]), 11)
    found = scrape(http)
    assert found.of("kbroker_requests_total", api="Fetch") == 1
    assert found.of("kbroker_request_seconds_sum", api="Fetch") < 0.5


def test_frames_that_make_no_sense_are_counted(server: ServerProcess, http: HttpClient) -> None:
    with server.client() as client:
        client.socket.sendall(b"\0\0\0\x0a" + b"\x7f" * 10)
        eventually(lambda: scrape(http).of("kbroker_malformed_requests_total") == 1)


def test_slow_requests_are_logged_with_where_the_time_went() -> None:
    slow = ("--set", "kbroker.slow.request.ms=0")
    with ServerProcess("--in-memory", "--http-port", "0", *slow) as server, HttpClient(server.url) as http:
        with server.client() as client:
            create(client, "t", 1)
            for _ in range(200):
                produce(client, "t", 0, b"secret value")
        assert scrape(http).of("kbroker_slow_requests_total") >= 200
        lines = [line for line in server.log().splitlines() if "kbroker.slow" in line]
    assert any("CreateTopics v5 of" in line and "ms at work" in line for line in lines)
    assert len(lines) < 200, "they are limited"
    assert "secret" not in "".join(lines)
