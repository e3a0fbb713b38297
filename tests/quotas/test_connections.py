"""Connections of clients above their quotas, with a real broker: answered at once, then not read."""

from __future__ import annotations

import contextlib
import socket
import time
from collections.abc import Iterator

import pytest

from kbroker.protocol.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    EntityData,
    OpData,
    RequestEntryData,
)
from kbroker.protocol.messages.api_versions import ApiVersionsRequest
from kbroker.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from kbroker.protocol.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from kbroker.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from kbroker.protocol.records import Record, build_batch
from tests.support.raw_client import Closed, RawClient
from tests.support.raw_topics import create
from tests.support.server_process import ServerProcess, eventually

HOURS_OF_BYTES = 1_000_000  # at a byte per second


@pytest.fixture
def server() -> Iterator[ServerProcess]:
    with ServerProcess("--in-memory") as server:
        with server.client() as client:
            create(client, "t", 1)
        yield server


def alter(server: ServerProcess, type_: str, name: str | None, quota: str, value: float | None) -> None:
    op = OpData(quota, value or 0.0, remove=value is None)
    with server.client() as client:
        request = AlterClientQuotasRequest([RequestEntryData([EntityData(type_, name)], [op])])
        assert client.ask(request, 1).entries[0].error_code == 0


def limit(server: ServerProcess, bytes_per_second: float) -> None:
    alter(server, "client-id", "raw", "producer_byte_rate", bytes_per_second)


def produce(size_bytes: int, acks: int = -1) -> ProduceRequest:
    records = memoryview(build_batch([Record(1, None, bytes(size_bytes))]))
    data = PartitionProduceData(index=0, records=records)
    return ProduceRequest(
        acks=acks, timeout_ms=1000, topic_data=[TopicProduceData("t", partition_data=[data])]
    )


def end_offset(server: ServerProcess) -> int:
    asked = ListOffsetsTopic("t", [ListOffsetsPartition(timestamp=-1)])
    with server.client() as client:
        offset: int = client.ask(ListOffsetsRequest(topics=[asked]), 7).topics[0].partitions[0].offset
        return offset


def test_the_answer_comes_at_once_and_the_next_request_waits_as_told(server: ServerProcess) -> None:
    limit(server, 1000)
    with server.client() as client:
        began = time.monotonic()
        wait_ms = client.ask(produce(10_300), 9).throttle_time_ms
        answered = time.monotonic()
        assert 300 < wait_ms < 600
        assert answered - began < wait_ms / 1000
        client.ask(ApiVersionsRequest(), 0)
        assert time.monotonic() - answered >= (wait_ms - 20) / 1000


@pytest.mark.parametrize("size_bytes", [100, 200_000], ids=["small", "large"])
def test_requests_that_came_together_are_executed_one_after_each_wait(
    server: ServerProcess, size_bytes: int
) -> None:
    with server.client() as client:
        frames = [client.frame(produce(size_bytes), 9) for _ in range(3)]
        limit(server, len(frames[0]) * 19 // 100)  # two of them take somewhat longer than ten seconds
        began = time.monotonic()
        client.socket.sendall(b"".join(frames))
        waits = [client.receive().throttle_time_ms for _ in range(3)]
        assert time.monotonic() - began >= waits[1] / 1000 - 0.02
    assert waits[0] == 0
    assert 400 < waits[1] < 1000
    assert end_offset(server) == 3


def test_produces_without_answers_make_the_connection_wait(server: ServerProcess) -> None:
    limit(server, 1000)
    with server.client() as client:
        began = time.monotonic()
        client.send_unanswered(produce(10_300, acks=0), 9)
        client.ask(ApiVersionsRequest(), 0)
        assert time.monotonic() - began >= 0.3


def test_what_came_before_the_client_ended_its_side_is_executed_after_the_wait(server: ServerProcess) -> None:
    limit(server, 1000)
    with server.client() as client:
        client.socket.sendall(client.frame(produce(10_300), 9) + client.frame(produce(100), 9))
        client.receive()
        client.socket.shutdown(socket.SHUT_WR)
        client.receive()
        with pytest.raises(Closed):
            client.take(1)
    assert end_offset(server) == 2


def test_a_client_that_goes_away_while_it_waits_is_forgotten(server: ServerProcess) -> None:
    limit(server, 1)
    for _ in range(5):
        with server.client() as client:
            assert client.ask(produce(HOURS_OF_BYTES), 9).throttle_time_ms > 3_600_000 // 10
    eventually(lambda: "Traceback" not in server.log())
    assert end_offset(server) == 5
    assert server.stop() == 0


def test_a_stop_does_not_wait_for_a_quota(server: ServerProcess) -> None:
    limit(server, 1)
    with server.client() as client:
        client.ask(produce(HOURS_OF_BYTES), 9)
        client.send(produce(10), 9)
        began = time.monotonic()
        assert server.stop() == 0
        assert time.monotonic() - began < 5


def test_nothing_is_read_from_a_client_that_has_to_wait(server: ServerProcess) -> None:
    limit(server, 1)
    with server.client() as client:
        client.ask(produce(HOURS_OF_BYTES), 9)
        before = server.memory_bytes()
        client.socket.settimeout(0.5)
        frame, sent = client.frame(produce(1 << 20), 9), 0
        with contextlib.suppress(TimeoutError):
            for _ in range(200):
                client.socket.sendall(frame)
                sent += len(frame)
        assert sent < 64 << 20  # what the system's own buffers took
        assert server.memory_bytes() - before < 8 << 20
        assert end_offset(server) == 1


def test_a_client_that_waits_does_not_make_others_wait(server: ServerProcess) -> None:
    limit(server, 1)
    with server.client() as greedy:
        greedy.ask(produce(HOURS_OF_BYTES), 9)
        greedy.send(produce(HOURS_OF_BYTES), 9)
        began = time.monotonic()
        for _ in range(50):
            end_offset(server)
        assert time.monotonic() - began < 5


def test_new_connections_faster_than_the_broker_allows_wait() -> None:
    with ServerProcess("--in-memory", "--set", "max.connection.creation.rate=10") as server:
        began = time.monotonic()
        clients = [server.client() for _ in range(115)]  # a hundred are ten seconds' worth
        for client in clients:
            client.ask(ApiVersionsRequest(), 0)
            client.close()
        assert time.monotonic() - began >= 1


def test_the_rate_of_new_connections_may_change_while_the_broker_runs() -> None:
    with ServerProcess("--in-memory") as server, server.client() as client:
        for value, operation in (("1", 0), ("", 1)):
            config = AlterableConfig("max.connection.creation.rate", operation, value or None)
            resource = AlterConfigsResource(4, "", [config])
            assert client.ask(IncrementalAlterConfigsRequest([resource]), 1).responses[0].error_code == 0
            began = time.monotonic()
            clients = [server.client() for _ in range(13)]
            for each in clients:
                each.ask(ApiVersionsRequest(), 0)
                each.close()
            assert (time.monotonic() - began >= 1) == bool(value)


def test_a_listener_may_have_a_rate_of_its_own() -> None:
    rate = "listener.name.plaintext.max.connection.creation.rate=1"
    with ServerProcess("--in-memory", "--set", rate) as server:
        began = time.monotonic()
        clients = [server.client() for _ in range(13)]
        for client in clients:
            client.ask(ApiVersionsRequest(), 0)
            client.close()
        assert time.monotonic() - began >= 1


def test_new_connections_faster_than_their_address_may_are_held_and_closed(server: ServerProcess) -> None:
    alter(server, "ip", "127.0.0.1", "connection_creation_rate", 1)
    outcomes = []
    for _ in range(12):
        began = time.monotonic()
        with RawClient(server.address) as client:
            try:
                client.ask(ApiVersionsRequest(), 0)
                outcomes.append("answered")
            except Closed:
                outcomes.append("closed")
                assert time.monotonic() - began > 0.1
    assert outcomes == ["answered"] * 10 + ["closed"] * 2
