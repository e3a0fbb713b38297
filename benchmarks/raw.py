"""A pipelining producer over one socket: the least a client can cost, so that the broker is measured."""

from __future__ import annotations

import socket
import struct
import time

from kbroker.protocol.codec import encode_bytes
from kbroker.protocol.headers import RequestHeader, request_header_version
from kbroker.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from kbroker.protocol.records import Record, build_batch

_VERSION = 9
WINDOW = 5  # requests on the way, as Kafka's producers have


def produce_frame(topic: str, partition: int, batch_bytes: int, acks: int = 1) -> bytes:
    """A Produce request with one batch of about this size."""
    value = bytes(1024 if batch_bytes > 1200 else max(1, batch_bytes - 100))
    records = [Record(int(time.time() * 1000), None, value)] * max(1, batch_bytes // (len(value) + 10))
    data = PartitionProduceData(index=partition, records=memoryview(build_batch(records)))
    request = ProduceRequest(
        acks=acks, timeout_ms=30_000, topic_data=[TopicProduceData(topic, partition_data=[data])]
    )
    header = RequestHeader(request_api_key=0, request_api_version=_VERSION, correlation_id=1, client_id="raw")
    body = encode_bytes(header, request_header_version(0, _VERSION)) + encode_bytes(request, _VERSION)
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
