"""HTTP/1.1 over raw sockets: the least a client can cost, so that the broker is measured.

Requests are made beforehand, and answers hardly looked at. Connections are kept open; each has one request
on the way: nothing is pipelined.
"""

from __future__ import annotations

import socket
import struct
import time
from collections.abc import Callable
from contextlib import ExitStack

from benchmarks.raw import take

CONNECTIONS = 4
_RECEIVED_AT_ONCE = 256 * 1024
_LENGTH = b"content-length: "

Address = tuple[str, int]
Take = Callable[[socket.socket], int]
"""Takes one answer from a connection, and returns its size."""


def request(method: str, path: str, body: bytes = b"", **headers: str) -> bytes:
    """``headers``: content_type is Content-Type."""
    lines = [f"{method} {path} HTTP/1.1", "host: 127.0.0.1:8080", "user-agent: benchmark"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    if body:
        lines.append(f"content-length: {len(body)}")
    return "\r\n".join([*lines, "", ""]).encode() + body


def connect(address: Address) -> socket.socket:
    connection = socket.create_connection(address, timeout=60)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return connection


def take_answer(connection: socket.socket) -> int:
    """One that says its length."""
    data = connection.recv(_RECEIVED_AT_ONCE)
    while (head := data.find(b"\r\n\r\n")) < 0:
        data += _received(connection)
    if not data.startswith(b"HTTP/1.1 2"):
        raise RuntimeError(f"the broker answered {data[:1000]!r}")
    at = data.index(_LENGTH) + len(_LENGTH)
    size = head + 4 + int(data[at : data.index(b"\r", at)])
    left = size - len(data)
    while left:
        left -= len(_received(connection))
    return size


def take_chunked_answer(connection: socket.socket) -> int:
    """One that ends with an empty chunk."""
    data = b""
    while not data.endswith(b"0\r\n\r\n"):
        data += _received(connection)
    if not data.startswith(b"HTTP/1.1 200"):
        raise RuntimeError(f"the broker answered {data[:1000]!r}")
    return len(data)


def take_frame(connection: socket.socket) -> int:
    """An answer of Kafka's protocol."""
    (size,) = struct.unpack(">i", take(connection, 4))
    take(connection, size)
    return int(size)


def pump(address: Address, asked: bytes, count: int, take_one: Take = take_answer) -> tuple[float, int]:
    """Ask ``count`` times, over all connections in turn; seconds, and the bytes of all answers."""
    with ExitStack() as stack:
        connections = [stack.enter_context(connect(address)) for _ in range(CONNECTIONS)]
        begin = time.perf_counter()
        size = sent = taken = 0
        for connection in connections[:count]:
            connection.sendall(asked)
            sent += 1
        while taken < count:
            connection = connections[taken % CONNECTIONS]
            size += take_one(connection)
            taken += 1
            if sent < count:
                connection.sendall(asked)
                sent += 1
        return time.perf_counter() - begin, size


def _received(connection: socket.socket) -> bytes:
    data = connection.recv(_RECEIVED_AT_ONCE)
    if not data:
        raise RuntimeError("the broker closed the connection")
    return data
