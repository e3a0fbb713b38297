"""/healthz and /readyz, as probes ask them, and `kbroker ping --ready`."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.http_client import HttpClient
from tests.support.raw_topics import create, produce
from tests.support.server_process import ServerProcess, eventually
from tests.support.small_disk import small_disk

WELL = {name: {"ok": True} for name in ("recovered", "catalog", "disk", "draining")}


def ping(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "kbroker", "ping", "--ready", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


def test_a_broker_is_alive_and_ready(http: HttpClient) -> None:
    alive = http.get("/healthz")
    assert (alive.status, alive.json) == (200, {"status": "alive"})
    ready = http.get("/readyz")
    assert (ready.status, ready.json) == (200, {"status": "ready", "checks": WELL})
    assert ready.headers["Cache-Control"] == "no-store"


def test_probes_need_no_login(tmp_path: Path) -> None:
    with (
        ServerProcess("--data", str(tmp_path), "--http-port", "0", "--user", "a:secret") as server,
        HttpClient(server.url) as http,
    ):
        assert http.get("/topics").status in (401, 403)
        assert http.get("/healthz").status == 200
        assert http.get("/readyz").json["checks"] == WELL
        assert not (tmp_path / ".probe").exists()


def test_a_broker_without_room_is_alive_and_not_ready_until_there_is_some(tmp_path: Path) -> None:
    with (
        small_disk(tmp_path / "disk", 12 << 20) as disk,
        ServerProcess("--data", str(disk.path / "data"), "--http-port", "0") as server,
        HttpClient(server.url) as http,
    ):
        assert http.get("/readyz").status == 200
        disk.fill()
        eventually(lambda: http.get("/readyz").status == 503)
        assert http.get("/readyz").json["checks"]["disk"] == {
            "ok": False,
            "problem": "it cannot be written: No space left on device",
        }
        assert http.get("/healthz").status == 200
        told = ping("--http", server.url)
        assert told.returncode == 4
        assert "is not ready: disk: it cannot be written" in told.stderr
        disk.empty()
        eventually(lambda: http.get("/readyz").status == 200)


def test_a_broker_that_was_killed_is_ready_once_it_is_recovered(tmp_path: Path) -> None:
    with ServerProcess("--data", str(tmp_path), "--http-port", "0") as server:
        with server.client() as client:
            create(client, "topic", 1)
            produce(client, "topic", 0, b"value")
        server.kill()
        server.start()
        with HttpClient(server.url) as http:
            assert http.get("/readyz").json["checks"] == WELL


def test_a_broker_that_drains_serves_on_and_says_that_it_stops() -> None:
    with (
        ServerProcess("--in-memory", "--http-port", "0", "--set", "kbroker.drain.ms=3600000") as server,
        HttpClient(server.url) as http,
        server.client() as client,
    ):
        create(client, "topic", 1)
        os.kill(server.pid, signal.SIGTERM)
        eventually(lambda: http.get("/readyz").status == 503)
        answer = http.get("/readyz").json["checks"]
        assert answer == {**WELL, "draining": {"ok": False, "problem": "the broker is stopping"}}
        assert http.get("/healthz").status == 200
        produce(client, "topic", 0, b"value")  # and who is there is served,
        with server.client() as another:  # and so is who comes
            produce(another, "topic", 0, b"value")
        assert server.stop() == 0  # a second signal is obeyed at once


def test_a_broker_that_drains_stops_when_the_time_is_over() -> None:
    with ServerProcess("--in-memory", "--set", "kbroker.drain.ms=200") as server:
        assert server.stop() == 0
        assert "stopping in 200 ms (kbroker.drain.ms)" in server.log()


def test_ping_asks_whether_it_is_ready(server: ServerProcess) -> None:
    told = ping("--http", server.url)
    assert told.returncode == 0, told.stderr
    assert told.stdout.startswith(f"{server.url} is ready, ")
    assert json.loads(ping("--http", server.url, "--json").stdout)["ready"] is True
    assert ping("--http", server.url, "--quiet").stdout == ""


@pytest.mark.parametrize(
    ("url", "code", "text"),
    [
        ("http://127.0.0.1:1", 3, "Connection refused"),
        ("127.0.0.1:8080", 2, "write it as http://"),
    ],
)
def test_ping_says_what_is_wrong(url: str, code: int, text: str) -> None:
    told = ping("--http", url)
    assert told.returncode == code
    assert text in told.stderr
    assert "Traceback" not in told.stderr


def test_ping_knows_a_port_that_is_not_http(server: ServerProcess) -> None:
    told = ping("--http", f"http://{server.bootstrap}", "--timeout", "20")
    assert told.returncode == 3, told.stderr
