"""What the log tells of clients: who and which request, not too often, and nothing that they sent."""

from __future__ import annotations

import json
import socket
import struct
import time
from base64 import b64encode
from typing import Any
from urllib.parse import urlsplit

import pytest

from kbroker.observability.log_limit import LINES, SECONDS
from kbroker.protocol.messages.sasl_authenticate import SaslAuthenticateRequest
from kbroker.protocol.messages.sasl_handshake import SaslHandshakeRequest
from tests.support.http_client import HttpClient
from tests.support.raw_client import RawClient
from tests.support.raw_topics import create, produce
from tests.support.server_process import ServerProcess, eventually

JSON = ("--in-memory", "--log-format", "json", "--log-level", "trace")


def lines_of(server: ServerProcess) -> list[dict[str, Any]]:
    return [json.loads(line) for line in server.log().splitlines()]


def misbehave(server: ServerProcess, frame: bytes = b"secret-bytes") -> None:
    """Send what is no request, and wait until the connection is closed for it."""
    with socket.create_connection(server.address, timeout=20) as stream:
        stream.sendall(struct.pack(">i", len(frame)) + frame)
        assert stream.recv(1) == b""


def test_a_line_about_a_client_says_which_connection_it_was() -> None:
    with ServerProcess(*JSON) as server:
        misbehave(server)
        misbehave(server)
        told = [line for line in lines_of(server) if "connection" in line]
        assert len(told) == 2
        assert told[0]["connection"] != told[1]["connection"]
        assert {line["peer"] for line in told} == {"127.0.0.1"}
        assert all(line["level"] == "WARNING" for line in told)


@pytest.mark.slow
def test_a_client_that_misbehaves_a_thousand_times_is_told_of_some_times_and_counted() -> None:
    with ServerProcess(*JSON) as server:
        begin = time.monotonic()
        for _ in range(1000):
            misbehave(server)

        def told() -> int:
            return sum(line.get("left_out", 0) or 1 for line in lines_of(server) if "peer" in line)

        eventually(lambda: told() >= 1000, 60)
        assert told() == 1000
        windows = (time.monotonic() - begin) // SECONDS + 1
        assert sum("left_out" not in line for line in lines_of(server) if "peer" in line) <= windows * LINES
        with server.client() as client:
            create(client, "topic", 1)


def test_a_line_about_a_request_by_http_has_its_id() -> None:
    with ServerProcess(*JSON, "--http-port", "0") as server, HttpClient(server.url) as http:
        http.get("/topics", X_Request_Id="mine-17")
        (line,) = (line for line in lines_of(server) if line.get("request") == "mine-17")
        assert line["connection"] >= 1
        assert "GET /topics 200" in line["message"]


def test_text_has_the_ids_behind_it() -> None:
    with ServerProcess("--in-memory") as server:
        misbehave(server)
        (line,) = (line for line in server.log().splitlines() if "closing" in line)
        assert line.endswith("[connection 1]")


@pytest.mark.parametrize("style", ["json", "text"])
def test_nothing_that_clients_send_is_in_the_log(style: str) -> None:
    with ServerProcess(
        *("--in-memory", "--log-format", style, "--log-level", "trace", "--http-port", "0"),
        *("--user", "ada:secret-password", "--set", "sasl.enabled.mechanisms=PLAIN,SCRAM-SHA-256"),
    ) as server:
        misbehave(server)
        misbehave(server, struct.pack(">hhi", 0, 9, 1) + b"secret-frame")
        _log_in(server, b"\0ada\0secret-wrong", fails=True)
        _log_in(server, b"secret-that-is-no-login", fails=True)
        client = _log_in(server, b"\0ada\0secret-password")
        with client:
            create(client, "topic", 1)
            produce(client, "topic", 0, b"secret-value")
        basic = {"Authorization": "Basic " + b64encode(b"ada:secret-password").decode()}
        with HttpClient(server.url) as http:
            http.ask("POST", "/topics/topic/messages", b'{"key": "secret-key", "value": "secret"}', basic)
            http.ask("POST", "/topics/topic/messages", b'{"key": "secret-key", "va', basic)
            http.ask("GET", "/topics?access_token=secret-token", headers={"Cookie": "a=secret-cookie"})
            http.ask("GET", "/topics", headers={"Authorization": "Bearer secret-token"})
            http.ask("GET", "/topics", headers={"Authorization": "Basic secret-credentials"})
        parts = urlsplit(server.url)
        with socket.create_connection((parts.hostname, parts.port), timeout=20) as stream:
            stream.sendall(b"secret-request-line\r\n\r\n")
            while stream.recv(4096):
                pass
        server.stop()
        log = server.log()
    assert "stopping" in log
    assert "secret" not in log
    assert b64encode(b"ada:secret-password").decode() not in log


def _log_in(server: ServerProcess, login: bytes, *, fails: bool = False) -> RawClient:
    client = server.client()
    client.ask(SaslHandshakeRequest(mechanism="PLAIN"), 1)
    answer = client.ask(SaslAuthenticateRequest(auth_bytes=login), 2)
    assert bool(answer.error_code) == fails
    if fails:
        client.close()
    return client
