"""Load by HTTP at a fixed rate, from a process of its own.

`python -m benchmarks.http.pressure PORT TOPIC KIND` prints a line once it has begun, and goes on until it is
killed.
"""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import time
from base64 import b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

from benchmarks.http import client

_MIB = 2**20
_SLOW_READERS, _IDLE, _ENDLESS = 200, 1000, 100
_ANNOUNCED = 16 * _MIB
_FETCHED = "/topics/{topic}/partitions/0/fetch?offset=0&maxRecords=10000&maxBytes={size}"


class Kind(NamedTuple):
    method: str
    path: str
    body: bytes
    per_second: float
    """0: as many as go, without reading an answer."""
    connections: int = 4


def _json_batch() -> bytes:
    return json.dumps([{"value": {"amount": 12, "name": "x" * 77}}] * 100).encode()


def _base64_batch() -> bytes:
    return json.dumps({"records": [b64encode(bytes(900)).decode()] * 800}).encode()


_RAW, _MANY = "/topics/{topic}/partitions/0", "/topics/{topic}/messages"
KINDS = {
    "idle": Kind("GET", "/", b"", 0, _IDLE),
    "small": Kind("POST", _RAW, bytes(100), 1000),
    "batches": Kind("POST", _MANY, _json_batch(), 200),
    "uploads": Kind("POST", f"{_RAW}/batch", _base64_batch(), 10),
    "fetches": Kind("GET", _FETCHED.format(topic="{topic}", size=_MIB), b"", 10),
    "slow readers": Kind("GET", _FETCHED.format(topic="{topic}", size=16 * _MIB), b"", 0, _SLOW_READERS),
}


@contextmanager
def pressure(port: int, topic: str, kind: str) -> Iterator[None]:
    command = [sys.executable, "-m", "benchmarks.http.pressure", str(port), topic, kind]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            if not process.stdout.readline():
                raise RuntimeError(f"no load of {kind}")
            yield
            if process.poll() is not None:
                raise RuntimeError(f"the load of {kind} ended early")
        finally:
            process.kill()


def main(port: int, topic: str, name: str) -> None:
    if name in KINDS:
        connections = _connections(port, topic, KINDS[name])
    else:
        connections = [each for open_some in HELD[name] for each in open_some(port, topic)]
    _say_begun()
    _trickle(connections)


def _connections(port: int, topic: str, kind: Kind) -> list[socket.socket]:
    """Each has asked once; of kinds with a rate nothing comes back."""
    asked = client.request(
        kind.method, kind.path.format(topic=topic), kind.body, content_type="application/json"
    )
    connections = [client.connect(("127.0.0.1", port)) for _ in range(kind.connections)]
    if kind.per_second:
        _at_rate(connections, asked, kind.per_second)
    for connection in connections:
        connection.sendall(asked)
    if kind is KINDS["idle"]:
        for connection in connections:
            client.take_answer(connection)
    return connections


def _slow_readers(port: int, topic: str) -> list[socket.socket]:
    return _connections(port, topic, KINDS["slow readers"])


def _idle_sockets(port: int, topic: str) -> list[socket.socket]:
    """WebSockets that wait for records of a topic where nothing happens."""
    opened = []
    asked = client.request(
        "GET",
        f"/topics/{topic}/stream",
        connection="Upgrade",
        upgrade="websocket",
        sec_websocket_version="13",
        sec_websocket_key=b64encode(bytes(16)).decode(),
    )
    for _ in range(_IDLE):
        connection = client.connect(("127.0.0.1", port))
        connection.sendall(asked)
        if not connection.recv(4096).startswith(b"HTTP/1.1 101 "):
            raise RuntimeError("no WebSocket")
        opened.append(connection)
    return opened


def _endless_bodies(port: int, topic: str) -> list[socket.socket]:
    """Some of a body, of which no more follows."""
    head = f"POST /topics/{topic}/messages HTTP/1.1\r\nHost: x\r\nContent-Length: {_ANNOUNCED}\r\n\r\n"
    begun = [client.connect(("127.0.0.1", port)) for _ in range(_ENDLESS)]
    for connection in begun:
        connection.sendall(head.encode() + b"[" * (_MIB // 4))
    return begun


HELD = {
    "idle sockets": (_idle_sockets,),
    "endless bodies": (_endless_bodies,),
    "all of them": (_idle_sockets, _slow_readers, _endless_bodies),
}
"""Kinds that come once and stay."""


def _at_rate(connections: list[socket.socket], asked: bytes, per_second: float) -> None:
    """One request on the way on each connection; who is late is not made up for."""
    for connection in connections:
        connection.sendall(asked)
    due = time.perf_counter()
    for number in range(sys.maxsize):
        connection = connections[number % len(connections)]
        client.take_answer(connection)
        if number == len(connections):
            _say_begun()
        due = max(due + 1 / per_second, time.perf_counter() - 0.01)
        time.sleep(max(0.0, due - time.perf_counter()))
        connection.sendall(asked)


def _trickle(connections: list[socket.socket]) -> None:
    """Read a little of each, so little that none is given up."""
    for connection in connections:
        connection.setblocking(False)
    while True:
        for connection in connections:
            try:
                connection.recv(1024)
            except BlockingIOError:
                continue
        time.sleep(1)


def _say_begun() -> None:
    print("begun", flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2], sys.argv[3])
