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
_SLOW_READERS, _IDLE = 200, 1000
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
    kind = KINDS[name]
    asked = client.request(
        kind.method, kind.path.format(topic=topic), kind.body, content_type="application/json"
    )
    connections = [client.connect(("127.0.0.1", port)) for _ in range(kind.connections)]
    if kind.per_second:
        _at_rate(connections, asked, kind.per_second)
    for connection in connections:
        connection.sendall(asked)
    if name == "idle":
        for connection in connections:
            client.take_answer(connection)
    _say_begun()
    _trickle(connections)


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
