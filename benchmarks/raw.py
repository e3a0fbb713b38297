"""A pipelining producer over one socket: the least a client can cost, so that the broker is measured."""

from __future__ import annotations

import socket
import struct
import time

from kbroker.protocol.codec import encode_bytes
from kbroker.protocol.headers import RequestHeader, request_header_version
from kbroker.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from kbroker.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from kbroker.protocol.records import Record, build_batch

_PRODUCE_VERSION = 9
_FETCH_VERSION = 12
WINDOW = 5  # requests on the way, as Kafka's producers have


def produce_frame(topic: str, partition: int, batch_bytes: int, acks: int = 1) -> bytes:
    """A Produce request with one batch of about this size."""
    value = bytes(1024 if batch_bytes > 1200 else max(1, batch_bytes - 100))
    return frame_of_records(topic, partition, [value] * max(1, batch_bytes // (len(value) + 10)), acks)


def frame_of_records(topic: str, partition: int, values: list[bytes], acks: int) -> bytes:
    """A Produce request with one batch of these."""
    now_ms = int(time.time() * 1000)
    batch = build_batch([Record(now_ms, None, value) for value in values])
    data = PartitionProduceData(index=partition, records=memoryview(batch))
    request = ProduceRequest(
        acks=acks, timeout_ms=30_000, topic_data=[TopicProduceData(topic, partition_data=[data])]
    )
    return _frame(0, _PRODUCE_VERSION, request)


def fetch_frame(topic: str, max_bytes: int) -> bytes:
    """A Fetch request for the first records of a partition."""
    partition = FetchPartition(0, fetch_offset=0, partition_max_bytes=max_bytes)
    request = FetchRequest(
        max_bytes=max_bytes, session_epoch=-1, topics=[FetchTopic(topic, partitions=[partition])]
    )
    return _frame(1, _FETCH_VERSION, request)


def _frame(api_key: int, version: int, request: ProduceRequest | FetchRequest) -> bytes:
    header = RequestHeader(
        request_api_key=api_key, request_api_version=version, correlation_id=1, client_id="raw"
    )
    body = encode_bytes(header, request_header_version(api_key, version)) + encode_bytes(request, version)
    return struct.pack(">i", len(body)) + body


def pump(address: tuple[str, int], frames: list[bytes], count: int) -> float:
    """Send ``count`` frames, taking them in turn, and read every answer; seconds."""
    with socket.create_connection(address, timeout=60) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        begin = time.perf_counter()
        sent = received = 0
        while received < count:
            while sent < count and sent - received < WINDOW:
                connection.sendall(frames[sent % len(frames)])
                sent += 1
            (size,) = struct.unpack(">i", take(connection, 4))
            take(connection, size)
            received += 1
        return time.perf_counter() - begin


def ask_for_bytes(address: tuple[str, int], count: int) -> float:
    """Send ``count`` empty frames, one after the other, and read every answer; seconds."""
    with socket.create_connection(address, timeout=60) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        begin = time.perf_counter()
        for _ in range(count):
            connection.sendall(bytes(4))
            (size,) = struct.unpack(">i", take(connection, 4))
            take(connection, size)
        return time.perf_counter() - begin


def take(connection: socket.socket, size: int) -> memoryview:
    """Exactly so many bytes."""
    data = memoryview(bytearray(size))
    taken = 0
    while taken < size:
        part = connection.recv_into(data[taken:])
        if not part:
            raise RuntimeError("the broker closed the connection")
        taken += part
    return data
