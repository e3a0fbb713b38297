"""More connections than the process may open files: it refuses some of them, and nothing else suffers."""

from __future__ import annotations

import contextlib
import errno
import os
import resource
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from kbroker.config.settings import Settings
from kbroker.errors import describe
from kbroker.network.connection_limits import ConnectionLimits
from kbroker.protocol.errors import ErrorCode
from kbroker.protocol.messages.api_versions import ApiVersionsRequest
from kbroker.storage.worker import InlineWorker
from tests.support.raw_topics import create, produce
from tests.support.server_process import ServerProcess, eventually

PARTITIONS = 50


@contextlib.contextmanager
def idle_connections(server: ServerProcess, count: int) -> Iterator[list[socket.socket]]:
    sockets: list[socket.socket] = []
    try:
        sockets.extend(socket.create_connection(server.address, timeout=20) for _ in range(count))
        yield sockets
    finally:
        for each in sockets:
            each.close()


def refused(sockets: list[socket.socket]) -> int:
    """How many of them the server has closed."""
    count = 0
    for each in sockets:
        each.setblocking(False)
        try:
            count += each.recv(1) == b""
        except BlockingIOError:
            pass
        except ConnectionResetError:
            count += 1
    return count


@pytest.mark.parametrize("fsync", [False, True])
@pytest.mark.parametrize(("descriptors", "connections"), [(256, 260), (1024, 1100)])
def test_connections_in_excess_are_closed_and_partitions_serve_on(
    tmp_path: Path, descriptors: int, connections: int, fsync: bool
) -> None:
    flags = ["--data", str(tmp_path), *(["--fsync"] if fsync else [])]
    with ServerProcess(*flags, descriptors=descriptors) as server, server.client() as client:
        assert create(client, "before", PARTITIONS) is ErrorCode.NONE
        assert {produce(client, "before", partition, b"value") for partition in range(PARTITIONS)} == {
            ErrorCode.NONE
        }
        with idle_connections(server, connections) as sockets:
            eventually(lambda: refused(sockets) > 0)
            for partition in range(PARTITIONS):
                assert produce(client, "before", partition, b"value") is ErrorCode.NONE
            assert create(client, "meanwhile", 3) is ErrorCode.NONE
            assert produce(client, "meanwhile", 0, b"value") is ErrorCode.NONE
        for partition in range(PARTITIONS):
            assert produce(client, "before", partition, b"value") is ErrorCode.NONE
        assert create(client, "afterwards", 3) is ErrorCode.NONE

        def accepted() -> bool:
            with contextlib.suppress(Exception), server.client() as another:
                return another.ask(ApiVersionsRequest(), 0).error_code == 0
            return False

        eventually(accepted)
        log = server.log()
        assert "fenced" not in log
        assert "Traceback" not in log
        assert log.count("connections are closed at once") == 1


def test_the_refused_are_told_of_once_in_a_while(caplog: pytest.LogCaptureFixture) -> None:
    counted = ConnectionLimits(Settings.load(), InlineWorker(), log_descriptors=1 << 40)
    admitted = 0
    while not counted.no_room(0):
        counted.take("10.0.0.1")
        admitted += 1
        assert admitted < 100
    for now_ms in range(0, 60_000, 100):
        assert counted.no_room(now_ms)
    assert len(caplog.records) == 1
    assert counted.no_room(60_000)
    assert len(caplog.records) == 2
    counted.give_back("10.0.0.1")
    assert not counted.no_room(60_000)


def test_a_shortage_wherever_it_is_met_is_retriable_and_no_riddle(caplog: pytest.LogCaptureFixture) -> None:
    for number in (errno.EMFILE, errno.ENFILE, errno.ENOSPC, errno.EDQUOT):
        code, _ = describe(OSError(number, os.strerror(number)))
        assert code is ErrorCode.KAFKA_STORAGE_ERROR
        assert code.retriable
    assert caplog.records == []
    assert describe(OSError(errno.EIO, "broken"))[0] is ErrorCode.UNKNOWN_SERVER_ERROR


def test_a_served_broker_takes_all_descriptors_it_may_have() -> None:
    limited = 'ulimit -S -n 300 && ulimit -H -n 600 && exec "$@"'
    serve = [sys.executable, "-m", "kbroker", "serve", "--in-memory", "--port", "0"]
    with subprocess.Popen(["sh", "-c", limited, "sh", *serve], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert "listening" in process.stdout.readline()
        assert resource.prlimit(process.pid, resource.RLIMIT_NOFILE) == (600, 600)
        process.terminate()
