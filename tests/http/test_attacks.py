"""Who does not play by the rules: garbage, smuggled requests, heads and bodies that never end. Each gets an
answer or an end, nobody else notices, nothing of it stays.
"""

from __future__ import annotations

import contextlib
import os
import random
import socket
import struct
from collections.abc import Iterator
from urllib.parse import urlsplit

import pytest

from tests.support.http_client import HttpClient
from tests.support.server_process import ServerProcess, eventually

from .test_listener import settings
from .test_logins import basic, serve

POST = b"POST /topics HTTP/1.1\r\nHost: x\r\n"
CHUNKED = POST + b"Transfer-Encoding: chunked\r\n"
GET = b"GET / HTTP/1.1\r\nHost: x\r\n"
UPGRADE = b"Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
SMUGGLED = b"GET /api/v1 HTTP/1.1\r\nHost: x\r\n\r\n"

# What it is, what is sent, and the status that is answered.
WRONG: dict[str, tuple[bytes, int]] = {
    "two lengths of a body": (CHUNKED + b"Content-Length: 5\r\n\r\n0\r\n\r\n", 400),
    "the same the other way": (POST + b"Content-Length: 5\r\n" + CHUNKED[-28:] + b"\r\n0\r\n\r\n", 400),
    "chunked is not last": (POST + b"Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n", 400),
    "an unknown coding": (POST + b"Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n", 400),
    "a blank before the colon": (POST + b"Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n", 400),
    "two Content-Length": (POST + b"Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}", 400),
    "a list of Content-Length": (POST + b"Content-Length: 2, 2\r\n\r\n{}", 400),
    "a length below 0": (POST + b"Content-Length: -1\r\n\r\n{}", 400),
    "a length with a sign": (POST + b"Content-Length: +2\r\n\r\n{}", 400),
    "a length of many digits": (POST + b"Content-Length: 99999999999999999999999\r\n\r\n{}", 400),
    "a chunk of many digits": (CHUNKED + b"\r\nfffffffffffffffffff\r\n{}", 400),
    "a chunk below 0": (CHUNKED + b"\r\n-1\r\n{}", 400),
    "bare line feeds of chunks": (CHUNKED + b"\r\n2\n{}\n0\n\n", 400),
    "bare line feeds": (b"GET / HTTP/1.1\nHost: x\n\n", 400),
    "bare carriage returns": (b"GET / HTTP/1.1\rHost: x\r\r", 400),
    "a folded header": (GET + b"A: b\r\n c\r\n\r\n", 400),
    "a null": (GET + b"A: \x00\r\n\r\n", 400),
    "no host": (b"GET / HTTP/1.1\r\n\r\n", 400),
    "two hosts": (GET + b"Host: y\r\n\r\n", 400),
    "a tunnel": (b"CONNECT evil.example:443 HTTP/1.1\r\nHost: x\r\n\r\n", 405),
    "HTTP/2": (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 400),
    "HTTP/3": (b"GET / HTTP/3.0\r\nHost: x\r\n\r\n", 400),
    "letters that are none": (b"GET /\xff\xfe HTTP/1.1\r\nHost: x\r\n\r\n", 400),
    "a long path": (b"GET /" + b"a" * 300_000 + b" HTTP/1.1\r\nHost: x\r\n\r\n", 431),
    "many headers": (GET + b"a:\r\n" * 100_000 + b"\r\n", 431),
    "many headers of few bytes": (GET + b"a:\r\n" * 1000 + b"\r\n", 431),
    "a WebSocket with a body": (POST + UPGRADE + b"Content-Length: 2\r\n\r\n[]", 400),
    "a WebSocket without a key": (GET.replace(b"/ ", b"/none ") + UPGRADE + b"\r\n", 404),
    "a WebSocket with a wrong key": (GET + UPGRADE + b"Sec-WebSocket-Key: x\r\n\r\n", 400),
    "TLS": (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"x" * 500, 400),
    "Kafka's protocol": (struct.pack(">ihhi", 32, 18, 3, 1) + b"x" * 50, 400),
    "nothing that makes sense": (bytes(range(256)) * 4, 400),
}


@pytest.fixture(scope="module")
def server() -> Iterator[ServerProcess]:
    with serve() as process, HttpClient(process.url) as http:
        assert http.get("/").status == 200  # what speaks HTTP is loaded
        yield process


def connect(server: ServerProcess) -> socket.socket:
    parts = urlsplit(server.url)
    return socket.create_connection((parts.hostname, parts.port), timeout=20)


def talk(server: ServerProcess, data: bytes) -> bytes:
    """What comes back to one who then says that nothing follows."""
    with connect(server) as stream:
        received = b""
        with contextlib.suppress(ConnectionResetError, BrokenPipeError):
            stream.sendall(data)
            stream.shutdown(socket.SHUT_WR)
        with contextlib.suppress(ConnectionResetError):
            while part := stream.recv(65536):
                received += part
    return received


def descriptors(server: ServerProcess) -> int:
    return len(os.listdir(f"/proc/{server.pid}/fd"))


def still_serves(server: ServerProcess) -> bool:
    with HttpClient(server.url) as http:
        return http.get("/topics").status == 200


@pytest.mark.parametrize("case", WRONG)
def test_what_is_wrong_is_answered_once_and_not_done(server: ServerProcess, case: str) -> None:
    sent, status = WRONG[case]
    before = server.log()
    answer = talk(server, sent)
    assert answer.startswith(b"HTTP/1.1 %d " % status), answer[:200]
    assert answer.count(b"\r\nHTTP/1.1 ") == 0, "there is no second answer"
    assert server.log() == before, "it is not worth a line"
    assert still_serves(server)


@pytest.mark.parametrize(
    "case", [case for case, (sent, _) in WRONG.items() if sent.startswith(POST) and "WebSocket" not in case]
)
def test_what_is_smuggled_behind_it_is_not_done_either(server: ServerProcess, case: str) -> None:
    """A proxy before the broker may see the end of a request somewhere else."""
    sent, status = WRONG[case]
    answer = talk(server, sent + SMUGGLED)
    assert answer.startswith(b"HTTP/1.1 %d " % status)
    assert b"clusterId" not in answer


def test_an_upgrade_to_what_is_not_spoken_is_ignored(server: ServerProcess) -> None:
    upgrade = b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABk\r\n\r\n"
    answer = talk(server, GET + upgrade + SMUGGLED)
    assert answer.count(b"HTTP/1.1 200 ") == 2


def test_half_of_a_request_ends_with_its_connection(server: ServerProcess) -> None:
    for sent in (b"GE", GET, POST + b"Content-Length: 100\r\n\r\n{", CHUNKED + b"\r\n5\r\n{"):
        assert talk(server, sent) == b""


def test_a_body_that_is_announced_too_long_is_refused_before_it_comes(server: ServerProcess) -> None:
    with connect(server) as stream:
        stream.sendall(POST + b"Content-Length: 9999999999999\r\n\r\n{}" + SMUGGLED)
        received = b""
        while part := stream.recv(65536):
            received += part
    assert received.startswith(b"HTTP/1.1 413 ")
    assert b"clusterId" not in received


def test_a_whole_request_is_answered_to_who_sends_no_more(server: ServerProcess) -> None:
    assert talk(server, SMUGGLED * 3).count(b"HTTP/1.1 200 ") == 3


def test_random_bytes_do_no_harm(server: ServerProcess) -> None:
    seeded = random.Random(18)
    valid = POST + b'Content-Length: 13\r\n\r\n{"name": "t"} ' + SMUGGLED
    for number in range(300):
        if number % 2:
            sent = bytearray(valid)
            for _ in range(seeded.randrange(1, 8)):
                sent[seeded.randrange(len(sent))] = seeded.randrange(256)
        else:
            sent = bytearray(seeded.randbytes(seeded.randrange(1, 2000)))
        talk(server, bytes(sent))
    assert still_serves(server)
    assert server.log() == ""


def test_nothing_stays_of_those_who_are_gone(server: ServerProcess) -> None:
    """As much memory after thousands of them as after hundreds, and no socket."""

    def attack() -> int:
        for sent, _ in WRONG.values():
            talk(server, sent)
        for _ in range(200):
            with connect(server) as stream:
                stream.sendall(POST + b"Content-Length: 1000000\r\n\r\n" + b"x" * 100_000)
                stream.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        eventually(lambda: descriptors(server) <= before)
        return server.memory_bytes()

    before = descriptors(server)
    for _ in range(15):
        first = attack()
    for _ in range(15):
        last = attack()
    assert last - first < 3_000_000
    assert still_serves(server)


def test_heads_that_come_a_byte_at_a_time_are_not_waited_for() -> None:
    """A connection for each, and one byte now and then."""
    limit = settings({"kbroker.http.request.timeout.ms": "1000"})
    with serve(*limit) as server, contextlib.ExitStack() as stack:
        slow = [stack.enter_context(connect(server)) for _ in range(300)]
        closed: set[int] = set()

        def all_closed() -> bool:
            for number, stream in enumerate(slow):
                if number in closed:
                    continue
                try:
                    stream.send(b"X")
                    stream.setblocking(False)
                    if stream.recv(1000):
                        closed.add(number)
                except BlockingIOError:
                    pass
                except OSError:
                    closed.add(number)
            assert still_serves(server)
            return len(closed) == len(slow)

        for stream in slow:
            stream.send(b"GET / HTTP/1.1\r\n")
        eventually(all_closed)
        assert server.log() == ""


def test_bodies_that_never_end_hold_little_and_keep_nobody_out() -> None:
    limit = settings({"kbroker.http.request.timeout.ms": "3000"})
    with serve(*limit) as server, contextlib.ExitStack() as stack:
        assert still_serves(server)
        before = server.memory_bytes()
        for number in range(200):
            stream = stack.enter_context(connect(server))
            head = (
                CHUNKED + b"\r\nfffffffff\r\n" if number % 2 else POST + b"Content-Length: 16000000\r\n\r\n"
            )
            stream.setblocking(False)
            with contextlib.suppress(BlockingIOError):
                stream.send(head + b"[" * 200_000)
        assert still_serves(server)
        assert server.memory_bytes() - before < 100_000_000
        eventually(lambda: descriptors(server) < 100)
        assert still_serves(server)


def test_who_has_not_logged_in_holds_little() -> None:
    """A body before a login is not read further than it came."""
    with serve("--user", "ada:secret") as server, contextlib.ExitStack() as stack:
        with HttpClient(server.url) as http:
            assert http.get("/docs").status == 200
            before = server.memory_bytes()
            guess = basic("ada", "wrong")["Authorization"].encode()
            head = POST + b"Authorization: " + guess + b"\r\nContent-Length: 16000000\r\n\r\n"
            for _ in range(300):
                stream = stack.enter_context(connect(server))
                stream.setblocking(False)
                with contextlib.suppress(BlockingIOError):
                    stream.send(head + b"x" * 1_000_000)
            assert http.ask("GET", "/topics", headers=basic("ada", "secret")).status == 200
            assert server.memory_bytes() - before < 120_000_000
        assert server.log().count("login failed") <= 10


def test_a_peer_that_sends_nothing_of_a_body_is_closed_when_it_is_idle_for_long() -> None:
    with serve(*settings({"connections.max.idle.ms": "1000"})) as server:
        with HttpClient(server.url) as http:
            cluster = http.get("/v3/clusters").json["data"][0]["cluster_id"].encode()
        head = b"POST /v3/clusters/" + cluster + b"/topics/t/records HTTP/1.1\r\nHost: x\r\n"
        with connect(server) as stream:
            stream.sendall(head + b"Transfer-Encoding: chunked\r\n\r\n")
            with contextlib.suppress(ConnectionResetError):
                assert stream.recv(1000) == b""
