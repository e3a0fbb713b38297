"""Fetches of what is not in the page cache, from a real process: sent by the kernel, in order, and whole."""

from __future__ import annotations

import os
import socket
import struct
from collections.abc import Iterator
from pathlib import Path

import pytest

from kbroker.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from kbroker.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from kbroker.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from kbroker.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from kbroker.protocol.records import Record, build_batch, iter_batches
from tests.support.raw_client import RawClient
from tests.support.server_process import ServerProcess, eventually

TOPIC = "old"
PARTITIONS = 3
BATCHES = 60
BATCH_BYTES = 50_000


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ServerProcess]:
    """Each partition has three megabytes, of which the page cache has nothing."""
    with ServerProcess("--data", str(tmp_path)) as server:
        with server.client() as client:
            topics = [CreatableTopic(name=TOPIC, num_partitions=PARTITIONS, replication_factor=1)]
            client.ask(CreateTopicsRequest(topics=topics, timeout_ms=30_000), 5)
            for number in range(BATCHES):
                for partition in range(PARTITIONS):
                    client.ask(produce(partition, number), 9)
        evict(tmp_path)
        yield server


def produce(partition: int, number: int) -> ProduceRequest:
    value = bytes([partition]) + number.to_bytes(4, "big") + os.urandom(BATCH_BYTES)
    data = PartitionProduceData(index=partition, records=memoryview(build_batch([Record(1, None, value)])))
    return ProduceRequest(
        acks=1, timeout_ms=30_000, topic_data=[TopicProduceData(TOPIC, partition_data=[data])]
    )


def evict(directory: Path) -> None:
    for path in directory.rglob("*.log"):
        with path.open("rb") as file:
            os.fdatasync(file.fileno())
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def fetch(offsets: dict[int, int], max_bytes: int = 1 << 20) -> FetchRequest:
    asked = [
        FetchPartition(partition=partition, fetch_offset=offset, partition_max_bytes=max_bytes)
        for partition, offset in offsets.items()
    ]
    return FetchRequest(
        max_wait_ms=500, min_bytes=1, max_bytes=50 << 20, topics=[FetchTopic(TOPIC, partitions=asked)]
    )


def logs(directory: Path) -> dict[int, bytes]:
    return {p: (directory / f"{TOPIC}-{p}" / f"{0:020}.log").read_bytes() for p in range(PARTITIONS)}


def read_on(client: RawClient, version: int, offsets: dict[int, int]) -> dict[int, bytes]:
    """Fetch until there is no more."""
    got = dict.fromkeys(offsets, b"")
    while any(offset < BATCHES for offset in offsets.values()):
        answer = client.ask(fetch(offsets, 300_000), version)
        for each in answer.responses[0].partitions:
            assert each.error_code == 0
            data = bytes(each.records)
            got[each.partition_index] += data
            for _, header in iter_batches(data):
                offsets[each.partition_index] = header.next_offset
    return got


@pytest.mark.parametrize("version", [4, 11, 12])
def test_all_partitions_are_read_to_their_ends(server: ServerProcess, tmp_path: Path, version: int) -> None:
    with server.client() as client:
        got = read_on(client, version, dict.fromkeys(range(PARTITIONS), 0))
    assert got == logs(tmp_path)


def test_an_old_client_gets_its_own_format(server: ServerProcess) -> None:
    with server.client() as client:
        answer = client.ask(fetch({0: 0}), 3)
    records = bytes(answer.responses[0].partitions[0].records)
    assert records[16] == 1  # the message format
    assert len(records) > BATCH_BYTES


def test_answers_to_requests_that_came_together_stay_in_order(server: ServerProcess, tmp_path: Path) -> None:
    end = ListOffsetsRequest(
        replica_id=-1, topics=[ListOffsetsTopic(TOPIC, [ListOffsetsPartition(0, timestamp=-1)])]
    )
    with server.client() as client:
        wanted = fetch({0: 0, 1: 5, 2: 10}, 1 << 20)
        frames = [client.frame(*each) for each in ((wanted, 11), (end, 5)) * 3]
        client.socket.sendall(b"".join(frames))
        for _ in range(3):
            partitions = client.receive().responses[0].partitions
            for each, first in zip(partitions, (0, 5, 10), strict=True):
                whole = logs(tmp_path)[each.partition_index]
                assert bytes(each.records) in whole
                assert next(iter(iter_batches(bytes(each.records))))[1].base_offset == first
            assert client.receive().topics[0].partitions[0].offset == BATCHES


def slow_client(server: ServerProcess) -> RawClient:
    """Whose socket takes little at a time."""
    client = server.client()
    client.socket.close()
    client.socket = socket.socket()
    client.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    client.socket.settimeout(20)
    client.socket.connect(server.address)
    return client


def test_a_slow_reader_gets_all_of_it(server: ServerProcess, tmp_path: Path) -> None:
    with slow_client(server) as client:
        client.socket.sendall(client.frame(fetch(dict.fromkeys(range(PARTITIONS), 0), 3 << 20), 11))
        answer = client.receive()
    got = {each.partition_index: bytes(each.records) for each in answer.responses[0].partitions}
    assert {p: whole.startswith(got[p]) and len(got[p]) > 1 << 20 for p, whole in logs(tmp_path).items()} == {
        0: True,
        1: True,
        2: True,
    }


def test_a_reader_that_asks_for_no_more_still_gets_what_it_asked_for(server: ServerProcess) -> None:
    with slow_client(server) as client:
        client.socket.sendall(client.frame(fetch({0: 0}, 3 << 20), 11))
        (size,) = struct.unpack(">i", client.take(4))
        client.socket.shutdown(socket.SHUT_WR)
        assert len(client.take(size)) == size
        assert client.socket.recv(1) == b""


def test_readers_that_leave_in_the_middle_take_nothing_with_them(server: ServerProcess) -> None:
    descriptors = Path(f"/proc/{server.pid}/fd")

    def sockets() -> int:
        found = 0
        for each in descriptors.iterdir():
            try:
                found += os.readlink(each).startswith("socket:")
            except FileNotFoundError:
                continue
        return found

    before = sockets()
    for _ in range(10):
        with slow_client(server) as client:
            client.socket.sendall(client.frame(fetch(dict.fromkeys(range(PARTITIONS), 0), 3 << 20), 11))
            client.take(1000)
    eventually(lambda: sockets() == before)
    with server.client() as client:
        assert client.ask(fetch({0: 0}), 11).responses[0].partitions[0].error_code == 0
    assert "Traceback" not in server.log()


def test_a_stop_lets_an_answer_on_its_way_arrive(server: ServerProcess) -> None:
    with slow_client(server) as client:
        client.socket.sendall(client.frame(fetch({0: 0}, 3 << 20), 11))
        (size,) = struct.unpack(">i", client.take(4))
        assert server._process is not None
        server._process.terminate()
        assert len(client.take(size)) == size
    assert server.wait() == 0
    assert "Traceback" not in server.log()
