"""What both brokers under test share: an address, and a way to know that it answers."""

from __future__ import annotations

import socket
import struct
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

API_VERSIONS_V0 = struct.pack(
    ">ihhih", 10, 18, 0, 1, -1
)  # length, key, version, correlation id, null client id


class ServerFailed(RuntimeError):
    """A broker process ended or did not answer in time; carries the end of its log."""


def free_ports(count: int) -> list[int]:
    """Ports that were free a moment ago (all held at once, so that they differ)."""
    sockets = [socket.socket() for _ in range(count)]
    try:
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]
    finally:
        for each in sockets:
            each.close()


def answers(host: str, port: int) -> bool:
    """Whether a broker answers ApiVersions at this address."""
    try:
        with socket.create_connection((host, port), timeout=2) as connection:
            connection.sendall(API_VERSIONS_V0)
            return len(connection.recv(8)) > 0
    except OSError:
        return False


def wait_until(
    condition: Callable[[], bool], process: subprocess.Popen[bytes], log: Path, seconds: float, pause: float
) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        if process.poll() is not None:
            raise ServerFailed(f"exit code {process.returncode}\n{tail(log)}")
        if time.monotonic() > deadline:
            raise ServerFailed(f"no answer within {seconds:g} s\n{tail(log)}")
        time.sleep(pause)


def tail(log: Path, lines: int = 40) -> str:
    return "\n".join(log.read_text(errors="replace").splitlines()[-lines:]) if log.exists() else ""


def stop_process(process: subprocess.Popen[bytes], grace_seconds: float = 15) -> int:
    """SIGTERM, then SIGKILL; returns the exit code."""
    if process.poll() is None:
        process.terminate()
        try:
            process.wait(grace_seconds)
        except subprocess.TimeoutExpired:
            process.kill()
    return process.wait()
