"""Framing, order, pipelining, limits: what a connection promises whatever it carries."""

from __future__ import annotations

import itertools
import socket
import struct

import pytest

from kbroker.protocol.messages.api_versions import ApiVersionsRequest
from kbroker.protocol.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from kbroker.protocol.messages.delete_topics import DeleteTopicsRequest
from kbroker.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from kbroker.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from kbroker.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from kbroker.protocol.records import Record, build_batch
from tests.support.raw_client import Closed, RawClient
from tests.support.server_process import ServerProcess, eventually

_numbers = itertools.count()


def new_topic(client: RawClient, partitions: int = 1) -> str:
    name = f"connection-{next(_numbers)}"
    topic = CreatableTopic(name=name, num_partitions=partitions, replication_factor=1)
    response = client.ask(CreateTopicsRequest(topics=[topic]), 5)
    assert response.topics[0].error_code == 0
    return name


def batch(*values: bytes) -> bytes:
    return build_batch([Record(timestamp=1, key=None, value=value) for value in values])


def produce(topic: str, *values: bytes, acks: int = -1) -> ProduceRequest:
    data = PartitionProduceData(index=0, records=memoryview(batch(*values)))
    return ProduceRequest(
        acks=acks, timeout_ms=1000, topic_data=[TopicProduceData(topic, partition_data=[data])]
    )


def fetch(topic: str, offset: int, max_wait_ms: int = 0, max_bytes: int = 1 << 20) -> FetchRequest:
    partition = FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=max_bytes)
    return FetchRequest(
        max_wait_ms=max_wait_ms, min_bytes=1, topics=[FetchTopic(topic, partitions=[partition])]
    )


def records_of(response: object) -> bytes:
    return bytes(response.responses[0].partitions[0].records)  # type: ignore[attr-defined]


def test_requests_sent_at_once_are_answered_in_their_order(client: RawClient) -> None:
    topic = new_topic(client)
    requests = [(produce(topic, b"%d" % n), 9) for n in range(50)]
    client.socket.sendall(b"".join(client.frame(*request) for request in requests))
    offsets = [client.receive().responses[0].partition_responses[0].base_offset for _ in requests]
    assert offsets == list(range(50))


def test_a_request_behind_a_long_poll_waits_for_it(server: ServerProcess, client: RawClient) -> None:
    topic = new_topic(client)
    client.send(fetch(topic, 0, max_wait_ms=20_000), 12)
    client.send(ApiVersionsRequest(), 0)
    with server.client() as other:
        other.ask(produce(topic, b"wake"), 9)
    assert b"wake" in records_of(client.receive())
    assert client.receive().error_code == 0


def test_a_frame_may_arrive_byte_by_byte(client: RawClient) -> None:
    frame = client.frame(MetadataRequest(topics=[]), 9)
    for byte in frame:
        client.socket.sendall(bytes((byte,)))
    assert client.receive().cluster_id


def test_many_frames_split_at_odd_places(client: RawClient) -> None:
    topic = new_topic(client)
    stream = b"".join(client.frame(produce(topic, bytes(700), b"%d" % n), 9) for n in range(300))
    for start in range(0, len(stream), 997):
        client.socket.sendall(stream[start : start + 997])
    offsets = [client.receive().responses[0].partition_responses[0].base_offset for _ in range(300)]
    assert offsets == list(range(0, 600, 2))


def test_a_request_of_many_megabytes_is_received_whole(client: RawClient) -> None:
    topic = f"connection-{next(_numbers)}"
    created = CreatableTopic(
        name=topic,
        num_partitions=1,
        replication_factor=1,
        configs=[CreatableTopicConfig("max.message.bytes", "50000000")],
    )
    assert client.ask(CreateTopicsRequest(topics=[created]), 5).topics[0].error_code == 0
    value = bytes(range(256)) * 80_000
    client.send(produce(topic, value), 9)
    client.send(fetch(topic, 0, max_bytes=1), 12)
    assert client.receive().responses[0].partition_responses[0].error_code == 0
    assert value in records_of(client.receive())


def test_a_long_poll_ends_at_its_deadline_without_data(client: RawClient) -> None:
    topic = new_topic(client)
    response = client.ask(fetch(topic, 0, max_wait_ms=50), 12)
    assert response.responses[0].partitions[0].high_watermark == 0
    assert records_of(response) == b""


def test_a_fetch_waits_for_min_bytes(server: ServerProcess, client: RawClient) -> None:
    topic = new_topic(client)
    request = fetch(topic, 0, max_wait_ms=20_000)
    request.min_bytes = 3 * len(batch(b"x" * 100))
    client.send(request, 12)
    with server.client() as other:
        for _ in range(3):
            other.ask(produce(topic, b"x" * 100), 9)
    assert records_of(client.receive()).count(b"x" * 100) == 3


def test_acks_0_has_no_answer_and_an_error_closes_the_connection(client: RawClient) -> None:
    topic = new_topic(client)
    client.send_unanswered(produce(topic, b"quiet", acks=0), 9)
    assert b"quiet" in records_of(client.ask(fetch(topic, 0, max_wait_ms=1000), 12))
    client.send(produce("no-such-topic", b"lost", acks=0), 9)
    with pytest.raises(Closed):
        client.receive()


def test_a_client_that_goes_away_in_a_long_poll_leaves_nothing_behind(server: ServerProcess) -> None:
    with server.client() as client:
        topic = new_topic(client)
        client.send(fetch(topic, 0, max_wait_ms=60_000), 12)
    with server.client() as other:
        other.ask(produce(topic, b"nobody listens"), 9)
        assert b"nobody listens" in records_of(other.ask(fetch(topic, 0), 12))


def test_deleting_a_topic_wakes_the_long_polls_on_it(server: ServerProcess, client: RawClient) -> None:
    topic = new_topic(client)
    client.send(fetch(topic, 0, max_wait_ms=60_000), 12)
    with server.client() as other:
        other.ask(DeleteTopicsRequest(topic_names=[topic], timeout_ms=1000), 5)
    assert client.receive().responses[0].partitions[0].error_code == 3


@pytest.mark.parametrize(
    ("sent", "said"),
    [
        (b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", "HTTP"),
        (bytes.fromhex("160301020001000100"), "TLS"),
        (struct.pack(">i", 2**31 - 1), "claims 2147483647 bytes"),
        (struct.pack(">i", -5), "claims -5 bytes"),
        (struct.pack(">ihhi", 8, 999, 0, 1), "unknown API key 999"),
        (struct.pack(">ihhi", 8, 3, 99, 1), "Metadata version 99 is not supported"),
        (struct.pack(">ih", 2, 3), "too short"),
    ],
)
def test_what_is_not_kafka_closes_that_connection_with_one_line(
    server: ServerProcess, client: RawClient, sent: bytes, said: str
) -> None:
    client.socket.sendall(sent)
    with pytest.raises(Closed):
        client.take(1)
    eventually(lambda: said in server.log())
    with server.client() as other:
        assert other.ask(ApiVersionsRequest(), 0).error_code == 0


def test_a_client_that_takes_no_answers_is_not_read_further() -> None:
    with ServerProcess("--in-memory") as server, server.client() as client:
        topic = new_topic(client)
        for _ in range(16):
            client.ask(produce(topic, bytes(1_000_000)), 9)
        before = server.memory_bytes()
        client.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        frame = client.frame(fetch(topic, 0, max_bytes=16_000_000), 12)
        client.socket.setblocking(False)
        sent = 0
        for _ in range(2000):
            try:
                sent += client.socket.send(frame)
            except BlockingIOError:
                break
        with server.client() as other:
            assert other.ask(ApiVersionsRequest(), 0).error_code == 0
            assert records_of(other.ask(fetch(topic, 16), 12)) == b""
        assert server.memory_bytes() - before < 64_000_000


def test_connections_beyond_the_limit_are_closed() -> None:
    with ServerProcess("--in-memory", "--set", "max.connections=2") as server:
        with server.client() as one, server.client() as two:
            assert one.ask(ApiVersionsRequest(), 0).error_code == 0
            assert two.ask(ApiVersionsRequest(), 0).error_code == 0
            with server.client() as three, pytest.raises(Closed):
                three.ask(ApiVersionsRequest(), 0)
        eventually(lambda: _served(server))
        assert "max.connections is reached" in server.log()


def test_a_silent_connection_is_closed_after_the_idle_timeout() -> None:
    with (
        ServerProcess("--in-memory", "--set", "connections.max.idle.ms=200") as server,
        server.client() as client,
        pytest.raises(Closed),
    ):
        client.take(1)


def test_metadata_answers_with_the_address_the_client_used() -> None:
    with ServerProcess("--in-memory", "--host", "0.0.0.0") as server:
        for host in ("127.0.0.1", "127.0.0.2"):
            with RawClient((host, server.address[1])) as client:
                (broker,) = client.ask(MetadataRequest(topics=[]), 9).brokers
                assert (broker.host, broker.port) == (host, server.address[1])
        assert f"told to connect to 127.0.0.2:{server.address[1]}" in server.log()


def test_a_configured_address_is_advertised_instead() -> None:
    with (
        ServerProcess("--in-memory", "--advertise", "kafka.example:9099") as server,
        server.client() as client,
    ):
        (broker,) = client.ask(MetadataRequest(topics=[]), 9).brokers
        assert (broker.host, broker.port) == ("kafka.example", 9099)


def test_asking_for_a_missing_topic_creates_it_before_the_answer(client: RawClient) -> None:
    name = f"connection-{next(_numbers)}"
    response = client.ask(MetadataRequest(topics=[MetadataRequestTopic(name=name)]), 9)
    assert response.topics[0].error_code == 0
    assert len(response.topics[0].partitions) == 1


def _served(server: ServerProcess) -> bool:
    with server.client() as client:
        try:
            return bool(client.ask(ApiVersionsRequest(), 0).error_code == 0)
        except Closed:
            return False
