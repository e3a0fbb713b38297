"""What clients can make a real broker process hold is bounded by queued.max.request.bytes."""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from kbroker.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from kbroker.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from kbroker.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from kbroker.protocol.records import Record, build_batch
from tests.support.raw_client import RawClient
from tests.support.server_process import ServerProcess, eventually

MIB = 2**20
BUDGET = 32 * MIB
SLACK = 24 * MIB  # the interpreter's own growth, allocator, sockets
TOPIC = "t"
LARGE = 50 * MIB


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ServerProcess]:
    with ServerProcess("--data", str(tmp_path), "--set", f"queued.max.request.bytes={BUDGET}") as server:
        with server.client() as client:
            topics = [CreatableTopic(name=TOPIC, num_partitions=1, replication_factor=1)]
            client.ask(CreateTopicsRequest(topics=topics, timeout_ms=30_000), 5)
        yield server


def produce() -> ProduceRequest:
    batch = memoryview(build_batch([Record(1, None, bytes(MIB - 200))]))
    data = PartitionProduceData(index=0, records=batch)
    return ProduceRequest(
        acks=1, timeout_ms=30_000, topic_data=[TopicProduceData(TOPIC, partition_data=[data])]
    )


def fetch() -> FetchRequest:
    partition = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=LARGE)
    return FetchRequest(
        max_wait_ms=500, min_bytes=1, max_bytes=LARGE, topics=[FetchTopic(TOPIC, partitions=[partition])]
    )


def fill(client: RawClient, megabytes: int) -> None:
    for _ in range(megabytes):
        answer = client.ask(produce(), 9)
        assert answer.responses[0].partition_responses[0].error_code == 0


def rss_anon(server: ServerProcess) -> int:
    for line in Path(f"/proc/{server.pid}/status").read_text().splitlines():
        if line.startswith("RssAnon:"):
            return int(line.split()[1]) * 1024
    raise AssertionError("no RssAnon")


def settled(server: ServerProcess) -> None:
    """Everything sent so far was looked at: requests on other connections are answered."""
    for _ in range(3):
        with server.client() as client:
            partition = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1)
            topics = [FetchTopic(TOPIC, partitions=[partition])]
            client.ask(FetchRequest(max_wait_ms=0, min_bytes=0, max_bytes=1, topics=topics), 11)


def received_bytes(connection: socket.socket) -> int:
    head = connection.recv(4, socket.MSG_WAITALL)
    (size,) = struct.unpack(">i", head)
    left = size
    while left:
        part = connection.recv(min(left, MIB))
        assert part, "the broker hung up"
        left -= len(part)
    return size


def test_a_thousand_fetches_of_50_mb_that_nobody_reads(server: ServerProcess) -> None:
    with server.client() as client:
        fill(client, 60)
    before = rss_anon(server)
    with ExitStack() as stack:
        clients = [stack.enter_context(server.client()) for _ in range(1000)]
        for client in clients:
            client.send(fetch(), 11)
        settled(server)
        assert rss_anon(server) - before < BUDGET + SLACK
        for client in clients[:5]:  # whoever reads is served
            assert received_bytes(client.socket) > MIB // 2
        assert rss_anon(server) - before < BUDGET + SLACK


def test_a_slow_consumer_that_asks_on_and_on(server: ServerProcess) -> None:
    with server.client() as client:
        fill(client, 60)
    before = rss_anon(server)
    with server.client() as slow:
        for _ in range(1000):
            slow.send(fetch(), 11)
        settled(server)
        assert rss_anon(server) - before < BUDGET + SLACK
        assert received_bytes(slow.socket) > MIB // 2


def test_producers_that_send_more_than_fits(server: ServerProcess) -> None:
    before = rss_anon(server)
    with ExitStack() as stack:
        clients = [stack.enter_context(server.client()) for _ in range(200)]
        frames = [client.frame(produce(), 9) for client in clients]
        for client, frame in zip(clients, frames, strict=True):
            client.socket.sendall(frame[:100_000])
        settled(server)
        assert rss_anon(server) - before < BUDGET + SLACK
        for client in clients:
            client.socket.settimeout(0)
        rest = {client: memoryview(frame)[100_000:] for client, frame in zip(clients, frames, strict=True)}

        def push() -> bool:
            for client in list(rest):
                try:
                    rest[client] = rest[client][client.socket.send(rest[client]) :]
                except BlockingIOError:
                    continue
                if not rest[client]:
                    del rest[client]
            assert rss_anon(server) - before < BUDGET + SLACK
            return not rest

        eventually(push, seconds=60)
        for client in clients:
            client.socket.settimeout(60)
            assert client.receive().responses[0].partition_responses[0].error_code == 0


def test_what_waited_for_records_is_let_go_when_it_is_answered(server: ServerProcess) -> None:
    with server.client() as client:
        fill(client, 1)
    before = rss_anon(server)
    with server.client() as producer, server.client() as consumer:
        for offset in range(1, 101):
            partition = FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=LARGE)
            topics = [FetchTopic(TOPIC, partitions=[partition])]
            consumer.send(FetchRequest(max_wait_ms=60_000, min_bytes=1, max_bytes=LARGE, topics=topics), 11)
            producer.ask(produce(), 9)
            assert received_bytes(consumer.socket) > MIB // 2
    assert rss_anon(server) - before < SLACK
