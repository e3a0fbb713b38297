"""Fetches of random old offsets: what finding a place in a large log costs."""

from __future__ import annotations

import random
import socket
import struct
import time

from benchmarks.compare.brokers import BenchKbroker, Meter
from benchmarks.raw import take
from kbroker.protocol.codec import decode, encode_bytes
from kbroker.protocol.headers import RequestHeader, request_header_version
from kbroker.protocol.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic

_VERSION = 11


def fetch_old_offsets(broker: BenchKbroker, topic: str, count: int) -> dict[str, float]:
    """Small fetches at random offsets below the end; the same seed every time."""
    chance = random.Random(1)
    with socket.create_connection((broker.host, broker.port), timeout=60) as connection:
        end = _fetch(connection, topic, 0).responses[0].partitions[0].high_watermark
        meter = Meter(broker)
        begin = time.perf_counter()
        for _ in range(count):
            _fetch(connection, topic, chance.randrange(end))
        seconds = time.perf_counter() - begin
        return {
            "cpu_us_per_request": meter.cpu_seconds / count * 1e6,
            "requests_per_s": count / seconds,
        }


def _fetch(connection: socket.socket, topic: str, offset: int) -> FetchResponse:
    partition = FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=4096)
    request = FetchRequest(
        max_wait_ms=0, min_bytes=1, max_bytes=4096, topics=[FetchTopic(topic, partitions=[partition])]
    )
    header = RequestHeader(request_api_key=1, request_api_version=_VERSION, correlation_id=1, client_id="raw")
    body = encode_bytes(header, request_header_version(1, _VERSION)) + encode_bytes(request, _VERSION)
    connection.sendall(struct.pack(">i", len(body)) + body)
    (size,) = struct.unpack(">i", take(connection, 4))
    response, _ = decode(FetchResponse, _VERSION, take(connection, size), 4)
    return response
