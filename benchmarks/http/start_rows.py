"""What the HTTP port costs who does not use it, and what the first who does waits for.

A broker is started again and again, each time with the data of the time before: without the port, with it
and, if there is a checkout of one, as it was before there was HTTP.
"""

from __future__ import annotations

import re
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from benchmarks.compare.brokers import Usage
from benchmarks.http import client
from compat.harness.server import API_VERSIONS_V0

Numbers = dict[str, float]
_STARTS = 10  # of a round
_LISTENING = re.compile(r"listening on [^:\s]+:(\d+)(?:, HTTP on http://[^:\s]+:(\d+))?")


class Started(NamedTuple):
    pid: int
    port: int
    http_port: int
    seconds: float
    """Until the first answer by Kafka's protocol."""


def run_unused(http_port: str | None, checkout: Path | None, scale: float) -> Iterator[Numbers]:
    """``http_port``: None if it is not known there."""
    with tempfile.TemporaryDirectory() as data:
        for number in range(max(1, int(_STARTS * scale)) + 1):
            with _started(data, http_port, checkout) as broker:
                usage = Usage.of(broker.pid)
                if number:  # the first one sets the directory up
                    yield {
                        "start_s": broker.seconds,
                        "start_cpu_s": _own_cpu_seconds(broker.pid),
                        "rss_anon_mb": usage.rss_anon_bytes / 2**20,
                        "rss_file_mb": usage.rss_file_bytes / 2**20,
                    }


def run_first_use(scale: float) -> Iterator[Numbers]:
    asked = client.request("GET", "/")
    with tempfile.TemporaryDirectory() as data:
        for _ in range(max(1, int(_STARTS * scale))):
            with _started(data, "0", None) as broker:
                before = Usage.of(broker.pid)
                address = ("127.0.0.1", broker.http_port)
                first, _ = client.pump(address, asked, 1)
                second, _ = client.pump(address, asked, 1)
                after = Usage.of(broker.pid)
                yield {
                    "first_answer_s": first,
                    "second_answer_s": second,
                    "more_rss_anon_mb": (after.rss_anon_bytes - before.rss_anon_bytes) / 2**20,
                    "more_rss_file_mb": (after.rss_file_bytes - before.rss_file_bytes) / 2**20,
                }


@contextmanager
def _started(data: str, http_port: str | None, checkout: Path | None) -> Iterator[Started]:
    command = [sys.executable, "-m", "kbroker", "serve", "--port", "0", "--data", data]
    if http_port is not None:
        command += ["--http-port", http_port]
    begin = time.perf_counter()
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, cwd=checkout
    ) as process:
        assert process.stdout is not None
        try:
            found = _LISTENING.search(process.stdout.readline())
            assert found is not None
            port = int(found[1])
            with socket.create_connection(("127.0.0.1", port), timeout=60) as connection:
                connection.sendall(API_VERSIONS_V0)
                client.take_frame(connection)
            seconds = time.perf_counter() - begin
            yield Started(process.pid, port, int(found[2] or 0), seconds)
        finally:
            process.terminate()


def _own_cpu_seconds(pid: int) -> float:
    """Of all threads so far, to the nanosecond."""
    return sum(
        int((task / "schedstat").read_text().split()[0]) / 1e9 for task in Path(f"/proc/{pid}/task").iterdir()
    )
