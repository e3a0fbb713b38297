"""Clients that take nothing, send without an end, or go without a word: what they cost, and when they go."""

from __future__ import annotations

import json
import os
import re
import socket
import struct
from base64 import b64encode
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from urllib.parse import urlsplit

import pytest

from tests.http.streams.conftest import publish, values
from tests.http.streams.test_events import followed
from tests.support.http_client import HttpClient
from tests.support.server_process import ServerProcess, eventually

pytestmark = pytest.mark.slow
MB = 1 << 20
ROOM = ("--set", f"queued.max.request.bytes={8 * MB}")


def connected(server: ServerProcess, receive_bytes: int | None = None) -> socket.socket:
    parts = urlsplit(server.url)
    stream = socket.socket()
    if receive_bytes is not None:
        stream.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_bytes)
    stream.settimeout(30)
    stream.connect((parts.hostname, parts.port))
    return stream


def head(stream: socket.socket) -> bytes:
    """Of the answer; what comes behind it stays where it is."""
    received = b""
    while b"\r\n\r\n" not in received:
        part = stream.recv(1)
        assert part, received
        received += part
    return received


@contextmanager
def events(server: ServerProcess, path: str) -> Iterator[socket.socket]:
    """A stream whose client reads only what the test reads, and has little room."""
    with connected(server, 4096) as stream:
        stream.sendall(f"GET {path} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        assert head(stream).startswith(b"HTTP/1.1 200")
        yield stream


@contextmanager
def websocket(server: ServerProcess, path: str) -> Iterator[socket.socket]:
    """The same by WebSocket, in bytes."""
    with connected(server, 4096) as stream:
        key = b64encode(os.urandom(16)).decode()
        stream.sendall(
            f"GET {path} HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
            f"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: {key}\r\n\r\n".encode()
        )
        assert head(stream).startswith(b"HTTP/1.1 101")
        yield stream


def frame(opcode: int, payload: bytes, *, fin: bool = True, announced: int | None = None) -> bytes:
    """As clients send it, with a mask of zeros; ``announced``: the length that it says it has."""
    size = len(payload) if announced is None else announced
    first = bytes((fin << 7 | opcode,))
    if size < 126:
        return first + bytes((0x80 | size,)) + bytes(4) + payload
    if size < 1 << 16:
        return first + b"\xfe" + struct.pack(">H", size) + bytes(4) + payload
    return first + b"\xff" + struct.pack(">Q", size) + bytes(4) + payload


def fill(http: HttpClient, topic: str) -> None:
    """With ten megabytes, in a hundred records."""
    for _ in range(20):
        publish(http, topic, *["x" * 100_000] * 5)


TEXT, CONTINUATION, PING = 1, 0, 9


def close_code(stream: socket.socket) -> int | None:
    """Of the close frame that ends what the broker sends, if it ends so."""
    received = b""
    with suppress(ConnectionError):
        while part := stream.recv(65536):
            received = (received + part)[-4096:]
    found = list(re.finditer(rb"\x88[\x02-\x7d](..)", received, re.DOTALL))
    return struct.unpack(">H", found[-1][1])[0] if found else None


def until_gone(stream: socket.socket) -> None:
    """Read what is left of a connection that the broker ends."""
    with suppress(ConnectionError):
        while stream.recv(65536):
            pass


@pytest.fixture
def small() -> Iterator[ServerProcess]:
    """A broker with little room for clients, that soon closes those that do nothing."""
    with ServerProcess(
        *("--in-memory", "--http-port", "0", *ROOM),
        *("--set", "kbroker.http.stream.timeout.ms=1000"),
        *("--set", "kbroker.http.request.timeout.ms=1000"),
    ) as server:
        yield server


@pytest.mark.parametrize("open_one", [events, websocket])
def test_who_takes_nothing_holds_little_and_is_closed(small: ServerProcess, open_one: object) -> None:
    assert callable(open_one)
    with HttpClient(small.url) as http, ExitStack() as stack:
        http.post("/topics", {"name": "t"})
        for _ in range(4):
            fill(http, "t")
        before = small.memory_bytes()
        slow = [stack.enter_context(open_one(small, "/topics/t/stream?offset=earliest")) for _ in range(40)]
        for number in range(50):  # others are served
            publish(http, "t", number)
        eventually(lambda: small.log().count("it took nothing of a stream for 1000 ms") == 40)
        assert small.memory_bytes() - before < 64 * MB
        for stream in slow:
            until_gone(stream)


@pytest.mark.parametrize("open_one", [events, websocket])
def test_who_takes_its_time_loses_nothing(
    server: ServerProcess, http: HttpClient, topic: str, open_one: object
) -> None:
    assert callable(open_one)
    with open_one(server, f"/topics/{topic}/stream?partition=0&maxRecords=3000&value=text") as stream:
        for number in range(0, 3000, 100):
            publish(http, topic, *[f"{each:05d}" + "x" * 2000 for each in range(number, number + 100)])
        received = b""
        while b"02999xxx" not in received[-8192:]:
            part = stream.recv(65536)
            assert part
            received += part
    found = [int(each) for each in re.findall(rb'"valueText":"\\"(\d{5})', received)]
    assert found == list(range(3000))


def test_a_reader_that_vanishes_in_the_middle_is_forgotten(small: ServerProcess) -> None:
    with HttpClient(small.url) as http:
        http.post("/topics", {"name": "t"})
        fill(http, "t")
        for open_one in (events, websocket) * 10:
            with open_one(small, "/topics/t/stream?offset=earliest") as stream:
                stream.recv(100)
                stream.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        with followed(small, "t", "offset=earliest") as good:
            assert len(good.records(100)) == 100
        assert small.stop() == 0
        assert "Traceback" not in small.log()


@pytest.mark.parametrize("open_one", [events, websocket])
def test_who_says_that_it_sends_no_more_is_gone(small: ServerProcess, open_one: object) -> None:
    assert callable(open_one)
    with HttpClient(small.url) as http:
        http.post("/topics", {"name": "t"})
        with open_one(small, "/topics/t/stream") as stream:
            stream.shutdown(socket.SHUT_WR)
            until_gone(stream)


def test_messages_that_never_end_are_bounded_and_closed(small: ServerProcess) -> None:
    with HttpClient(small.url) as http, ExitStack() as stack:
        before = small.memory_bytes()
        begun = []
        for _ in range(20):
            stream = stack.enter_context(websocket(small, "/socket"))
            stream.setblocking(False)
            with suppress(BlockingIOError):
                stream.send(frame(TEXT, b"x" * 2 * MB, announced=10 * MB))
            begun.append(stream)
        http.post("/topics", {"name": "t"})
        publish(http, "t", 1)
        for stream in begun:
            stream.settimeout(30)
        assert {close_code(stream) for stream in begun} <= {1008, 1013, None}
        assert small.memory_bytes() - before < 64 * MB


def test_a_message_that_comes_in_drops_is_not_waited_for(small: ServerProcess) -> None:
    with websocket(small, "/socket") as stream:
        stream.sendall(frame(TEXT, b"", announced=100))
        assert close_code(stream) == 1008


def test_a_message_of_countless_parts_is_refused() -> None:
    limit = ("--set", "kbroker.http.max.request.bytes=1000000")
    with ServerProcess("--in-memory", "--http-port", "0", *limit) as server:
        with websocket(server, "/socket") as stream:
            stream.sendall(frame(TEXT, b"", fin=False))
            with suppress(ConnectionError):
                for _ in range(100):
                    stream.sendall(frame(CONTINUATION, b"", fin=False) * 1000)
            assert close_code(stream) in (1009, None)
        assert server.memory_bytes() < 200 * MB


def test_pings_without_an_end_pile_up_nothing(small: ServerProcess) -> None:
    with websocket(small, "/socket") as stream:
        before = small.memory_bytes()
        stream.settimeout(1)
        sent = 0
        with suppress(TimeoutError, ConnectionError):
            while sent < 50 * MB:
                sent += stream.send(frame(PING, b"x" * 125) * 500)
        assert small.memory_bytes() - before < 16 * MB
    assert "Traceback" not in small.log()


def test_very_many_very_short_messages_are_answered_one_by_one(small: ServerProcess) -> None:
    with websocket(small, "/socket") as stream:
        before = small.memory_bytes()
        stream.settimeout(1)
        sent = 0
        with suppress(TimeoutError, ConnectionError):
            while sent < 4 * MB:
                sent += stream.send(frame(TEXT, b"") * 10_000)
        assert small.memory_bytes() - before < 32 * MB


def test_garbage_ends_the_socket_and_nothing_else(small: ServerProcess) -> None:
    for garbage in (
        b"\xff" * 1000,
        bytes(1000),
        b"GET / HTTP/1.1\r\n\r\n",
        frame(TEXT, b"\xff\xfe"),
        frame(3, b"x"),
    ):
        with websocket(small, "/socket") as stream:
            stream.sendall(garbage)
            assert close_code(stream) in (1002, 1007, None)
    with websocket(small, "/socket") as stream:
        stream.sendall(frame(TEXT, json.dumps({"id": 1, "command": "heartbeat"}).encode()))
        assert stream.recv(100).endswith(b'{"id":1,"result":{}}')
    assert "Traceback" not in small.log()


def test_a_stop_ends_streams_in_order() -> None:
    with ServerProcess("--in-memory", "--http-port", "0") as server, HttpClient(server.url) as http:
        http.post("/topics", {"name": "t", "partitions": 2})
        with (
            followed(server, "t") as stream,
            followed(server, "t", "offset=earliest") as other,
            websocket(server, "/topics/t/stream") as socket_stream,
            websocket(server, "/topics/t/stream?group=g") as member,
            websocket(server, "/socket") as commands,
        ):
            publish(http, "t", 1)
            assert values(stream.records(1)) == [1]
            assert server.stop() == 0
            (end,) = list(stream.events())
            assert (end.name, end.json["status"]) == ("end", 503)
            assert [each.name for each in other.events()] == ["message", "end"]
            assert {close_code(each) for each in (socket_stream, member, commands)} == {1001}
        assert "Traceback" not in server.log()


def test_a_stop_does_not_wait_for_who_takes_nothing() -> None:
    from time import monotonic

    with ServerProcess("--in-memory", "--http-port", "0") as server, HttpClient(server.url) as http:
        http.post("/topics", {"name": "t"})
        fill(http, "t")
        with ExitStack() as stack:
            for open_one in (events, websocket) * 3:
                stack.enter_context(open_one(server, "/topics/t/stream?offset=earliest"))
            publish(http, "t", 1)
            began = monotonic()
            assert server.stop() == 0
            assert monotonic() - began < 9  # what a drain takes that nobody ends
        assert "Traceback" not in server.log()
