"""While a hostile client asks for much, an honest one is answered: on a real broker process."""

from __future__ import annotations

import random
import socket
import struct
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from kbroker.protocol.errors import ErrorCode
from kbroker.protocol.messages.api_versions import ApiVersionsRequest
from kbroker.protocol.messages.create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from kbroker.protocol.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from kbroker.protocol.messages.describe_groups import DescribeGroupsRequest
from kbroker.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from kbroker.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from kbroker.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from kbroker.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kbroker.protocol.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup
from kbroker.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from kbroker.protocol.records import Record, build_batch
from tests.support.raw_client import Closed, RawClient
from tests.support.server_process import ServerProcess, eventually

MIB = 2**20
BUDGET = 32 * MIB


class Honest:
    """Asks on and on, and notes how long each answer took."""

    def __init__(self, server: ServerProcess) -> None:
        self._client = server.client(timeout=120)
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._ask)
        self.waits: list[float] = []

    def _ask(self) -> None:
        while not self._stop.is_set():
            begin = time.monotonic()
            self._client.ask(ApiVersionsRequest(), 0)
            self.waits.append(time.monotonic() - begin)

    def __enter__(self) -> Honest:
        self._thread.start()
        eventually(lambda: len(self.waits) > 10)
        self.waits.clear()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()
        self._client.close()


@pytest.fixture(scope="module")
def server() -> Iterator[ServerProcess]:
    with ServerProcess("--in-memory", "--set", "group.initial.rebalance.delay.ms=0") as server:
        with server.client() as client:
            client.ask(CreateTopicsRequest(topics=[CreatableTopic("t", 100, 1)], timeout_ms=30_000), 7)
        yield server


def frame_size(client: RawClient) -> int:
    """Of the next answer, which is read."""
    (size,) = struct.unpack(">i", client.take(4))
    left = int(size)
    while left:
        left -= len(client.socket.recv(min(left, MIB)))
    return int(size)


@contextmanager
def others_get_on(server: ServerProcess, client: RawClient, request: Any, version: int) -> Iterator[int]:
    """Send a request, and be sure that others were answered often while it was under way."""
    with Honest(server) as honest:
        begin = time.monotonic()
        client.send(request, version)
        size = frame_size(client)
        took = time.monotonic() - begin
    # Without turns one answer takes as long as all of it.
    assert max(honest.waits) < max(took / 4, 0.5)
    yield size


def test_describing_the_broker_three_thousand_times(server: ServerProcess) -> None:
    resources = [DescribeConfigsResource(4, "1", None) for _ in range(3000)]
    with (
        server.client(60) as client,
        others_get_on(server, client, DescribeConfigsRequest(resources=resources), 4) as size,
    ):
        assert size < 200_000


def test_describing_a_topic_three_hundred_thousand_times(server: ServerProcess) -> None:
    resources = [DescribeConfigsResource(2, "t", None) for _ in range(300_000)]
    with (
        server.client(120) as client,
        others_get_on(server, client, DescribeConfigsRequest(resources=resources), 4) as size,
    ):
        assert size < 200_000


def test_refusing_twenty_thousand_topics(server: ServerProcess) -> None:
    topics = [CreatableTopic(f"new-{number}", 1, 1) for number in range(20_000)]
    with server.client(60) as client, Honest(server) as honest:
        answer = client.ask(CreateTopicsRequest(topics=topics, timeout_ms=30_000), 7)
    assert {topic.error_code for topic in answer.topics} == {ErrorCode.POLICY_VIOLATION}
    assert len(answer.topics) == 20_000
    assert max(honest.waits) < 2


def test_fetching_all_offsets_of_one_group_a_thousand_times(server: ServerProcess) -> None:
    offsets = [OffsetCommitRequestPartition(index, 1) for index in range(100)]
    with server.client(60) as client:
        commit = OffsetCommitRequest("g", topics=[OffsetCommitRequestTopic("t", partitions=offsets)])
        client.ask(commit, 8)
        groups = [OffsetFetchRequestGroup("g", topics=None) for _ in range(1000)]
        with others_get_on(server, client, OffsetFetchRequest(groups=groups), 9) as size:
            assert size < 10_000


def test_describing_a_large_group_a_hundred_times(server: ServerProcess) -> None:
    with server.client(60) as member, server.client(60) as client:
        join = JoinGroupRequest(
            group_id="large",
            session_timeout_ms=30_000,
            rebalance_timeout_ms=30_000,
            protocol_type="consumer",
            protocols=[JoinGroupRequestProtocol("range", bytes(2 * MIB))],
        )
        assert member.ask(join, 3).error_code == ErrorCode.NONE
        request = DescribeGroupsRequest(groups=["large"] * 100)
        with others_get_on(server, client, request, 5) as size:
            assert size < 3 * MIB


def test_requests_that_came_together_do_not_run_without_a_pause(server: ServerProcess) -> None:
    resources = [DescribeConfigsResource(4, "1", None)]
    with server.client(120) as client, Honest(server) as honest:
        frames = [client.frame(DescribeConfigsRequest(resources=resources), 4) for _ in range(1000)]
        begin = time.monotonic()
        sender = threading.Thread(target=client.socket.sendall, args=(b"".join(frames),))
        sender.start()
        for _ in frames:
            frame_size(client)
        took = time.monotonic() - begin
        sender.join()
    assert max(honest.waits) < max(took / 4, 0.5)


def test_an_answer_larger_than_its_part_of_the_budget_is_refused() -> None:
    with ServerProcess("--in-memory", "--set", f"queued.max.request.bytes={MIB}") as server:
        with server.client(60) as client:
            topics = [CreatableTopic(f"t{number}", 1, 1) for number in range(300)]
            client.ask(CreateTopicsRequest(topics=topics, timeout_ms=30_000), 7)
            resources = [DescribeConfigsResource(2, topic.name, None) for topic in topics]
            answer = client.ask(DescribeConfigsRequest(resources=resources), 4)
            assert {result.error_code for result in answer.results} == {ErrorCode.POLICY_VIOLATION}
            answer = client.ask(DescribeConfigsRequest(resources=resources[:10]), 4)
            assert {result.error_code for result in answer.results} == {ErrorCode.NONE}
        assert "its answer has too many bytes" in server.log()


# announcing much, reading nothing


@pytest.fixture
def small_server(tmp_path: Path) -> Iterator[ServerProcess]:
    with ServerProcess("--data", str(tmp_path), "--set", f"queued.max.request.bytes={BUDGET}") as server:
        with server.client() as client:
            client.ask(CreateTopicsRequest(topics=[CreatableTopic("t", 1, 1)], timeout_ms=30_000), 7)
            for _ in range(40):
                client.ask(produce(MIB - 200), 9)
        yield server


def produce(size: int) -> ProduceRequest:
    data = PartitionProduceData(index=0, records=memoryview(build_batch([Record(1, None, bytes(size))])))
    return ProduceRequest(
        acks=1, timeout_ms=30_000, topic_data=[TopicProduceData("t", partition_data=[data])]
    )


def fetch(max_bytes: int) -> FetchRequest:
    partition = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=max_bytes)
    topics = [FetchTopic("t", partitions=[partition])]
    return FetchRequest(max_wait_ms=500, min_bytes=1, max_bytes=max_bytes, topics=topics)


def get_on(server: ServerProcess) -> None:
    """An honest consumer and an honest producer, before anybody had to be closed."""
    with server.client(60) as client:
        for _ in range(20):
            client.send(fetch(2 * MIB), 11)
            assert frame_size(client) > MIB // 2
            assert client._sent.pop()
            assert client.ask(produce(1000), 9).responses[0].partition_responses[0].error_code == 0
    assert "makes no progress" not in server.log()


@pytest.mark.parametrize("announced", [BUDGET // 60, 2 * MIB, 50 * MIB])
def test_announced_frames_do_not_keep_others_from_reading_and_writing(
    small_server: ServerProcess, announced: int
) -> None:
    with ExitStack() as stack:
        for _ in range(60):
            client = stack.enter_context(small_server.client())
            client.socket.sendall(struct.pack(">i", announced) + bytes(64 * 1024))
        get_on(small_server)


def test_peers_that_pipeline_fetches_and_read_nothing_do_not_starve_others(
    small_server: ServerProcess,
) -> None:
    with ExitStack() as stack:
        for _ in range(20):
            client = stack.enter_context(small_server.client())
            for _ in range(10):
                client.send(fetch(50 * MIB), 11)
        get_on(small_server)


@pytest.mark.parametrize(
    ("connections", "announced", "sent"), [(1000, 60_000, 59_000), (400, 1_000_000, 250_000)]
)
def test_what_unfinished_frames_have_sent_counts_in_the_budget(
    small_server: ServerProcess, connections: int, announced: int, sent: int
) -> None:
    before = small_server.memory_bytes()
    with ExitStack() as stack:
        for _ in range(connections):
            client = stack.enter_context(small_server.client())
            client.socket.settimeout(0)
            with_size = struct.pack(">i", announced) + bytes(sent)
            try:
                client.socket.send(with_size)
            except BlockingIOError:  # the broker takes no more
                continue
        get_on(small_server)
        per_connection = 20 * 1024  # a part of a frame each may be held besides
        assert small_server.memory_bytes() - before < BUDGET + 16 * MIB + connections * per_connection


def test_long_requests_do_not_wait_for_room_that_they_take_from_each_other(
    small_server: ServerProcess,
) -> None:
    topics = [MetadataRequestTopic(name=f"topic-{number}") for number in range(60_000)]
    request = MetadataRequest(topics=topics, allow_auto_topic_creation=False)
    with ExitStack() as stack:
        clients = [stack.enter_context(small_server.client(120)) for _ in range(6)]
        frame = [client.frame(request, 9) for client in clients]
        for client, data in zip(clients, frame, strict=True):
            client.socket.sendall(data)
        assert len({frame_size(client) for client in clients}) == 1
        get_on(small_server)


def test_large_batches_that_wait_to_be_looked_into_all_get_their_turn(small_server: ServerProcess) -> None:
    configs = [CreatableTopicConfig("cleanup.policy", "compact")]
    records = [Record(1, b"k%d" % number, random.Random(number).randbytes(900)) for number in range(1000)]
    data = PartitionProduceData(index=0, records=memoryview(build_batch(records, codec=4)))
    request = ProduceRequest(
        acks=1, timeout_ms=30_000, topic_data=[TopicProduceData("c", partition_data=[data])]
    )
    with ExitStack() as stack:
        clients = [stack.enter_context(small_server.client(120)) for _ in range(100)]
        topics = [CreatableTopic("c", 1, 1, configs=configs)]
        clients[0].ask(CreateTopicsRequest(topics=topics, timeout_ms=30_000), 7)
        senders = [threading.Thread(target=client.send, args=(request, 9)) for client in clients]
        for sender in senders:
            sender.start()
        offsets = []
        for client, sender in zip(clients, senders, strict=True):
            sender.join()
            (result,) = client.receive().responses[0].partition_responses
            assert result.error_code == ErrorCode.NONE
            offsets.append(result.base_offset)
        assert sorted(offsets) == [1000 * number for number in range(100)]


def test_what_came_before_the_peer_ended_its_side_is_executed(server: ServerProcess) -> None:
    """A producer with acks=0 sends everything, and hangs up."""
    with server.client() as client, server.client() as reader:
        many = build_batch([Record(1, None, b"x") for _ in range(10)])
        request = ProduceRequest(
            acks=0,
            timeout_ms=30_000,
            topic_data=[
                TopicProduceData(
                    "t",
                    partition_data=[
                        PartitionProduceData(index=index, records=memoryview(bytearray(many)))
                        for index in range(100)
                    ],
                )
            ],
        )
        for _ in range(50):
            client.send_unanswered(request, 9)
        client.socket.shutdown(socket.SHUT_WR)

        def all_there() -> bool:
            partitions = [
                FetchPartition(partition=n, fetch_offset=0, partition_max_bytes=1) for n in range(100)
            ]
            asked = FetchRequest(
                max_wait_ms=0, min_bytes=0, max_bytes=1, topics=[FetchTopic("t", partitions=partitions)]
            )
            (topic,) = reader.ask(asked, 11).responses
            return all(partition.high_watermark == 500 for partition in topic.partitions)

        eventually(all_there)


def test_a_produce_of_far_too_many_partitions_closes_its_connection(server: ServerProcess) -> None:
    """Its size is bounded only by that of its records: decoded, entries take many times their bytes."""
    before = server.memory_bytes()
    entry = struct.pack(">ii", 0, -1)  # partition 0, without records
    body = struct.pack(">hhihhhhii", 0, 3, 1, -1, -1, 1, 0, 1, 1) + b"t" + struct.pack(">i", 4_000_000)
    with server.client(120) as client:
        client.socket.sendall(struct.pack(">i", len(body) + 4_000_000 * len(entry)) + body)
        for _ in range(400):
            client.socket.sendall(entry * 10_000)
        with pytest.raises(Closed):
            client.take(4)
    assert "too many entries" in server.log()
    assert server.memory_bytes() - before < 200 * MIB
