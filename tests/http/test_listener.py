"""Where HTTP is, and whom it lets in: what an operator is told at the start."""

from __future__ import annotations

import pytest

from tests.support.http_client import HttpClient
from tests.support.raw_quotas import set_quotas
from tests.support.server_process import ServerProcess, eventually

from .test_logins import basic

ANYBODY = "anybody who reaches"


def serve(*arguments: str) -> ServerProcess:
    return ServerProcess("--in-memory", "--port", "0", *arguments)


def settings(values: dict[str, str]) -> list[str]:
    return [part for name, value in values.items() for part in ("--set", f"{name}={value}")]


def test_http_that_others_reach_and_that_knows_nobody_is_warned_of() -> None:
    with serve("--http-port", "0", *settings({"kbroker.http.host": "0.0.0.0"})) as server:
        assert server.url.startswith("http://0.0.0.0:")
        line = next(line for line in server.log().splitlines() if ANYBODY in line)
        assert "HTTP on 0.0.0.0:" in line
        assert "PLAINTEXT on" not in line, "Kafka's listener is on this machine alone"


@pytest.mark.parametrize(
    "values",
    [
        {},
        {"kbroker.http.port": "off", "listeners": "PLAINTEXT://127.0.0.1:0"},
        {
            "kbroker.http.host": "0.0.0.0",
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,HTTP:SASL_PLAINTEXT",
            "listener.name.http.sasl.enabled.mechanisms": "PLAIN",
            "kbroker.http.port": "0",
        },
    ],
    ids=["on loopback", "off", "with logins"],
)
def test_http_that_is_closed_is_not_warned_of(values: dict[str, str]) -> None:
    port = () if "kbroker.http.port" in values else ("--http-port", "0")
    with serve(*port, *settings(values)) as server:
        assert ANYBODY not in server.log()


def test_http_alone_may_ask_for_logins() -> None:
    values = {
        "listeners": "PLAINTEXT://127.0.0.1:0",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,HTTP:SASL_PLAINTEXT",
        "listener.name.http.sasl.enabled.mechanisms": "PLAIN",
    }
    with (
        serve("--http-port", "0", "--user", "ada:secret", *settings(values)) as server,
        HttpClient(server.url) as http,
    ):
        assert http.get("/topics").status == 401
        assert http.ask("GET", "/topics", headers=basic("ada", "secret")).status == 200


def test_http_that_nobody_asked_for_lets_in_nobody_whom_other_listeners_would_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("KBROKER_HTTP_PORT")
    values = {
        "listeners": "INSIDE://0.0.0.0:0,OUTSIDE://127.0.0.1:0",
        "listener.security.protocol.map": "INSIDE:PLAINTEXT,OUTSIDE:SASL_PLAINTEXT",
        "sasl.enabled.mechanisms": "PLAIN",
        "advertised.listeners": "INSIDE://localhost:9092",
    }
    with serve("--user", "ada:secret", *settings(values)) as server:
        assert server.url == ""
        assert "there is no HTTP API: it would let in anybody" in server.log()
        assert "kbroker.http.listener" in server.log()
    with serve("--user", "ada:secret", "--http-port", "0", *settings(values)) as server:
        assert server.url != "", "it was asked for"
    outside = settings({"kbroker.http.listener": "OUTSIDE", "kbroker.http.port": "0"})
    with serve("--user", "ada:secret", *settings(values), *outside) as server, HttpClient(server.url) as http:
        assert http.get("/topics").status == 401


def test_new_connections_come_no_faster_than_they_may() -> None:
    values = {"listener.name.http.max.connection.creation.rate": "1", "quota.window.num": "2"}
    with serve("--http-port", "0", *settings(values)) as server:
        for _ in range(4):
            with HttpClient(server.url) as http:
                assert http.get("/").status == 200


def test_an_address_that_comes_too_fast_is_held_and_closed() -> None:
    with serve("--http-port", "0", *settings({"quota.window.num": "2"})) as server, server.client() as client:
        set_quotas(client, {"ip": "127.0.0.9"}, connection_creation_rate=1)

        def is_closed(host: str) -> bool:
            try:
                with HttpClient(server.url) as http:
                    http._connection.source_address = (host, 0)
                    return http.get("/").status != 200
            except (ConnectionError, OSError):
                return True

        assert not is_closed("127.0.0.9")
        eventually(lambda: is_closed("127.0.0.9"))
        assert not is_closed("127.0.0.1")
