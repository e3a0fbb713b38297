"""A broker that systemd started tells it how it goes. The manager here is a socket, as systemd's is."""

from __future__ import annotations

import os
import signal
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.server_process import ServerProcess


@pytest.fixture
def manager(tmp_path: Path) -> Iterator[socket.socket]:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listening:
        listening.bind(str(tmp_path / "notify"))
        listening.settimeout(30)
        yield listening


def heard(manager: socket.socket) -> list[str]:
    return manager.recv(4096).decode().splitlines()


def next_but(manager: socket.socket, *passed: str) -> list[str]:
    while (lines := heard(manager))[0] in passed:
        pass
    return lines


def test_it_says_that_it_serves_and_that_it_stops(manager: socket.socket) -> None:
    with ServerProcess("--in-memory", env={"NOTIFY_SOCKET": manager.getsockname()}) as server:
        assert heard(manager) == ["READY=1", f"STATUS=serving on {server.bootstrap}"]
        os.kill(server.pid, signal.SIGTERM)
        assert heard(manager) == ["STOPPING=1", "STATUS=stopping"]
        assert server.wait() == 0


def test_it_says_that_it_stops_before_it_drains(manager: socket.socket) -> None:
    environ = {"NOTIFY_SOCKET": manager.getsockname(), "KBROKER_DRAIN_MS": "3600000"}
    with ServerProcess("--in-memory", env=environ) as server:
        assert heard(manager)[0] == "READY=1"
        os.kill(server.pid, signal.SIGTERM)
        assert heard(manager)[0] == "STOPPING=1"
        assert server.stop() == 0


def test_it_gives_signs_of_life_as_long_as_it_lives(manager: socket.socket) -> None:
    environ = {"NOTIFY_SOCKET": manager.getsockname(), "WATCHDOG_USEC": "50000"}
    with ServerProcess("--in-memory", env=environ) as server:
        assert heard(manager)[0] == "READY=1"
        for _ in range(5):
            assert heard(manager) == ["WATCHDOG=1"]
        os.kill(server.pid, signal.SIGTERM)
        assert next_but(manager, "WATCHDOG=1")[0] == "STOPPING=1"
        assert server.wait() == 0


def test_signs_that_another_process_shall_give_are_not_given(manager: socket.socket) -> None:
    environ = {"NOTIFY_SOCKET": manager.getsockname(), "WATCHDOG_USEC": "1000", "WATCHDOG_PID": "1"}
    with ServerProcess("--in-memory", env=environ) as server:
        assert heard(manager)[0] == "READY=1"
        os.kill(server.pid, signal.SIGTERM)
        assert heard(manager)[0] == "STOPPING=1"


def test_an_abstract_socket_will_do() -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listening:
        name = f"kbroker-test-{os.getpid()}"
        listening.bind(f"\0{name}")
        listening.settimeout(30)
        with ServerProcess("--in-memory", env={"NOTIFY_SOCKET": f"@{name}"}):
            assert heard(listening)[0] == "READY=1"


def test_a_manager_that_is_gone_stops_nobody(tmp_path: Path) -> None:
    with ServerProcess("--in-memory", env={"NOTIFY_SOCKET": str(tmp_path / "gone")}) as server:
        with server.client():
            pass
        assert server.stop() == 0
        assert "cannot be told READY=1" in server.log()
