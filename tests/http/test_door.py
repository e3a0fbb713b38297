"""The door itself: where it is, when it is loaded, what it makes of requests that lead nowhere."""

from __future__ import annotations

import socket
import subprocess
import sys
from urllib.parse import urlsplit

import pytest

from tests.support.http_client import HttpClient
from tests.support.server_process import ServerProcess


def _talk(server: ServerProcess, data: bytes) -> bytes:
    """What comes back until the broker closes."""
    parts = urlsplit(server.url)
    with socket.create_connection((parts.hostname, parts.port), timeout=20) as stream:
        stream.sendall(data)
        received = b""
        while part := stream.recv(65536):
            received += part
        return received


def _refused(*arguments: str) -> str:
    """What a broker says that does not start."""
    command = [sys.executable, "-m", "kbroker", "serve", "--in-memory", "--port", "0", *arguments]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert ended.returncode == 1
    return ended.stderr


def _modules(server: ServerProcess) -> str:
    with open(f"/proc/{server.pid}/maps") as maps:
        return maps.read()


def test_the_first_page_says_what_this_is(http: HttpClient) -> None:
    answer = http.get("/")
    assert answer.status == 200
    assert answer.json["name"] == "kbroker"
    assert http.get("/api/v1").json["clusterId"] == answer.json["clusterId"]


def test_every_answer_has_a_request_id_and_takes_the_clients(http: HttpClient) -> None:
    assert http.get("/").headers["X-Request-Id"]
    assert http.get("/", X_Request_Id="mine-1").headers["X-Request-Id"] == "mine-1"
    assert http.get("/", X_Request_Id="a b").headers["X-Request-Id"] != "a b"


def test_an_unknown_path_is_a_problem_document(http: HttpClient) -> None:
    answer = http.get("/no/such/thing")
    assert (answer.status, answer.media_type) == (404, "application/problem+json")
    assert answer.json["title"] == "Not Found"
    assert answer.headers["X-Request-Id"] in answer.json["instance"]


def test_a_wrong_method_is_told_the_right_ones(http: HttpClient) -> None:
    answer = http.ask("DELETE", "/")
    assert (answer.status, answer.headers["Allow"]) == (405, "GET")
    answer = http.get("/topics/t/messages")
    assert (answer.status, answer.headers["Allow"]) == (405, "POST")


def test_head_answers_without_a_body(http: HttpClient) -> None:
    answer = http.ask("HEAD", "/")
    assert (answer.status, answer.body) == (200, b"")


def test_nothing_of_http_is_loaded_before_the_first_connection() -> None:
    with ServerProcess("--in-memory", "--http-port", "0") as server:
        assert "httptools" not in _modules(server)
        with HttpClient(server.url) as http:
            assert http.get("/").status == 200
        assert "httptools" in _modules(server)


def test_a_port_that_was_asked_for_and_is_taken_ends_the_start() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert "choose another one with --http-port" in _refused("--http-port", str(port))


def test_a_broker_without_http_says_nothing_of_it() -> None:
    with ServerProcess("--in-memory", "--http-port", "off") as server:
        assert server.url == ""


@pytest.mark.parametrize("port", ["http", "65536", "-1"])
def test_a_port_that_is_none_is_refused(port: str) -> None:
    assert "neither a port" in _refused(f"--http-port={port}")


def test_garbage_is_answered_once_and_closed(server: ServerProcess) -> None:
    answer = _talk(server, b"\x00\x01garbage\r\n\r\n")
    assert answer.startswith(b"HTTP/1.1 400 ")
    assert b"application/problem+json" in answer


def test_a_head_without_an_end_is_refused(server: ServerProcess) -> None:
    answer = _talk(server, b"GET / HTTP/1.1\r\nHost: x\r\nX-Long: " + b"a" * 200_000)
    assert answer.startswith(b"HTTP/1.1 431 ")


def test_a_head_that_does_not_come_is_not_waited_for() -> None:
    with ServerProcess(
        "--in-memory", "--http-port", "0", "--set", "kbroker.http.request.timeout.ms=200"
    ) as server:
        assert _talk(server, b"GET / HTTP/1.1\r\nHost: x\r\n").startswith(b"HTTP/1.1 408 ")
        assert _talk(server, b"").startswith(b"HTTP/1.1 408 ")


def test_requests_that_come_together_are_answered_in_order(server: ServerProcess) -> None:
    asked = b"".join(b"GET / HTTP/1.1\r\nHost: x\r\nX-Request-Id: n%d\r\n\r\n" % n for n in range(5))
    answer = _talk(server, asked + b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
    found = [answer.index(b"x-request-id: n%d\r\n" % n) for n in range(5)]
    assert found == sorted(found)
    assert answer.count(b"HTTP/1.1 200 OK") == 6


def test_a_body_that_nobody_reads_ends_the_connection(server: ServerProcess) -> None:
    head = b"POST /no/such HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\n"
    assert b"connection: close" in _talk(server, head + b"x" * 1000)


def test_who_goes_in_the_middle_of_a_body_is_not_waited_for(server: ServerProcess) -> None:
    parts = urlsplit(server.url)
    with socket.create_connection((parts.hostname, parts.port), timeout=20) as stream:
        stream.sendall(b"POST /topics HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n{")
        stream.shutdown(socket.SHUT_WR)
        assert stream.recv(1) == b""


def test_an_upgrade_to_what_is_not_spoken_here_is_ignored(server: ServerProcess) -> None:
    """Java's HttpClient asks for HTTP/2 with its first request, whatever that is."""
    answer = _talk(
        server,
        b"POST /topics HTTP/1.1\r\nHost: x\r\nUpgrade: h2c\r\nHTTP2-Settings: AAEAAEAAAAIA\r\n"
        b"Connection: Upgrade, HTTP2-Settings\r\nContent-Length: 19\r\n\r\n"
        b'{"name": "by-java"}GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n',
    )
    assert [int(part[:3]) for part in answer.split(b"HTTP/1.1 ")[1:]] == [201, 200]


def test_a_websocket_where_there_is_none_is_told_so(server: ServerProcess) -> None:
    answer = _talk(
        server,
        b"GET /topics HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n",
    )
    assert answer.startswith(b"HTTP/1.1 405 ")
    assert b"application/problem+json" in answer


def test_what_is_no_request_for_this_server_is_refused(server: ServerProcess) -> None:
    assert _talk(server, b"CONNECT other:80 HTTP/1.1\r\nHost: other\r\n\r\n").startswith(b"HTTP/1.1 405 ")


def test_the_end_of_a_chunked_body_sets_no_headers(server: ServerProcess) -> None:
    answer = _talk(
        server,
        b"POST /topics HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
        b'15\r\n{"name": "in-chunks"}\r\n0\r\nX-Request-Id: trailer\r\n\r\n'
        b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
    )
    assert answer.startswith(b"HTTP/1.1 201 ")
    assert b"x-request-id: trailer" not in answer


def test_http_1_0_ends_with_the_connection(server: ServerProcess) -> None:
    head, _, body = _talk(server, b"GET / HTTP/1.0\r\n\r\n").partition(b"\r\n\r\n")
    assert b"connection: close" in head
    assert b"kbroker" in body


def test_who_says_nothing_more_is_closed() -> None:
    with ServerProcess(
        "--in-memory", "--http-port", "0", "--set", "kbroker.http.keep.alive.ms=100"
    ) as server:
        assert _talk(server, b"GET / HTTP/1.1\r\nHost: x\r\n\r\n").startswith(b"HTTP/1.1 200 ")


def test_a_stop_answers_and_closes_idle_connections() -> None:
    with ServerProcess("--in-memory", "--http-port", "0") as server, HttpClient(server.url) as http:
        assert http.get("/").status == 200
        assert server.stop() == 0
