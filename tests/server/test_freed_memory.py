"""What a broker process does with the memory of answers and requests that have gone."""

from __future__ import annotations

import platform
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from kbroker.network.freed_memory import GIVE_BACK_SECONDS, pause_after
from kbroker.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from kbroker.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from kbroker.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from kbroker.protocol.records import Record, build_batch
from tests.support.raw_client import RawClient
from tests.support.server_process import ServerProcess, eventually

MIB = 2**20
PAGE = 4096
TOPIC = "t"
PARTITIONS = 16
ROUNDS = 20

pytestmark = pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="another allocator")


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ServerProcess]:
    with ServerProcess("--data", str(tmp_path)) as server:
        with server.client() as client:
            create_topic(client)
        yield server


def create_topic(client: RawClient) -> None:
    topics = [CreatableTopic(name=TOPIC, num_partitions=PARTITIONS, replication_factor=1)]
    client.ask(CreateTopicsRequest(topics=topics, timeout_ms=30_000), 5)


def produce_request(partition: int, size: int) -> ProduceRequest:
    batch = memoryview(build_batch([Record(1, None, bytes(size - 200))]))
    data = PartitionProduceData(index=partition, records=batch)
    return ProduceRequest(
        acks=1, timeout_ms=30_000, topic_data=[TopicProduceData(TOPIC, partition_data=[data])]
    )


def fill(client: RawClient) -> None:
    """A megabyte for each partition."""
    for partition in range(PARTITIONS):
        for _ in range(16):
            answer = client.ask(produce_request(partition, MIB // 16), 9)
            assert answer.responses[0].partition_responses[0].error_code == 0


def fetch(client: RawClient) -> int:
    """A megabyte of each partition; how many bytes came."""
    asked = [
        FetchPartition(partition=partition, fetch_offset=0, partition_max_bytes=MIB)
        for partition in range(PARTITIONS)
    ]
    request = FetchRequest(
        max_wait_ms=500, min_bytes=1, max_bytes=64 * MIB, topics=[FetchTopic(TOPIC, partitions=asked)]
    )
    answered = client.ask(request, 11).responses[0].partitions
    return sum(len(partition.records) for partition in answered)


def page_faults(server: ServerProcess) -> int:
    return int(Path(f"/proc/{server.pid}/stat").read_text().rpartition(")")[2].split()[7])


def faults_of_fetches(server: ServerProcess, client: RawClient) -> int:
    assert fetch(client) > (PARTITIONS - 1) * MIB
    before = page_faults(server)
    for _ in range(ROUNDS):
        fetch(client)
    return page_faults(server) - before


def test_answers_are_not_made_of_fresh_memory_each_time(server: ServerProcess) -> None:
    with server.client() as client:
        fill(client)
        begin = time.monotonic()
        faults = faults_of_fetches(server, client)
        given_back = 2 + (time.monotonic() - begin) / GIVE_BACK_SECONDS  # at most so often
    assert faults < given_back * PARTITIONS * MIB / PAGE


def test_who_has_set_the_allocator_up_keeps_that(tmp_path: Path) -> None:
    variables = {"MALLOC_TRIM_THRESHOLD_": "0"}
    with ServerProcess("--data", str(tmp_path), env=variables) as server, server.client() as client:
        create_topic(client)
        fill(client)
        assert faults_of_fetches(server, client) > ROUNDS * PARTITIONS * MIB / PAGE / 2


def test_the_memory_of_answers_is_given_back(server: ServerProcess) -> None:
    with server.client() as client:
        fill(client)
        idle = server.memory_bytes()
        for _ in range(3):
            fetch(client)
        eventually(lambda: server.memory_bytes() < idle + 4 * MIB)


def test_the_memory_of_large_requests_is_given_back(server: ServerProcess) -> None:
    with ExitStack() as stack:
        clients = [stack.enter_context(server.client()) for _ in range(PARTITIONS)]
        idle = server.memory_bytes()
        frames = [client.frame(produce_request(0, MIB), 9) for client in clients]
        for client, frame in zip(clients, frames, strict=True):
            client.socket.sendall(frame[: MIB // 2])
        eventually(lambda: server.memory_bytes() > idle + PARTITIONS * MIB // 4)
        for client, frame in zip(clients, frames, strict=True):
            client.socket.sendall(frame[MIB // 2 :])
            assert client.receive().responses[0].partition_responses[0].error_code == 0
        eventually(lambda: server.memory_bytes() < idle + 4 * MIB)


def test_what_is_freed_long_after_it_came_is_given_back_too(server: ServerProcess) -> None:
    """The broker looks several times while it is held, and no page comes when it is freed."""
    idle = server.memory_bytes()
    with ExitStack() as stack:
        clients = [stack.enter_context(server.client()) for _ in range(PARTITIONS)]
        for client in clients:
            client.socket.sendall(client.frame(produce_request(0, MIB), 9)[: MIB // 2])
        eventually(lambda: server.memory_bytes() > idle + PARTITIONS * MIB // 4)
        faults = 0

        def quiet() -> bool:
            nonlocal faults
            before, faults = faults, page_faults(server)
            return before == faults

        looks = 3 * GIVE_BACK_SECONDS
        begin = time.monotonic()
        eventually(lambda: quiet() and time.monotonic() - begin > looks)
    eventually(lambda: server.memory_bytes() < idle + 4 * MIB)


def test_giving_back_takes_at_most_a_thousandth_of_the_time() -> None:
    assert pause_after(0.001) == GIVE_BACK_SECONDS
    assert pause_after(0.03) == pytest.approx(30)
