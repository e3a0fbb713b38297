"""The door itself: where it is, when it is loaded, how long connections stay."""

from __future__ import annotations

import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import grpc
import pytest
from h2 import events
from h2.errors import ErrorCodes

from kbroker.testing.control_client import ControlClient
from tests.support.grpc_client import EARLIEST, GrpcClient, pb
from tests.support.http2_client import Http2Client
from tests.support.server_process import ServerProcess, eventually

_WITHOUT = """
import sys
sys.modules["h2"] = None
from kbroker.cli import main
sys.exit(main(["serve", "--in-memory", "--port", "0", "--http-port", "off", "--grpc-port", "0"]))
"""


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        return int(taken.getsockname()[1])


def _maps(server: ServerProcess) -> str:
    return Path(f"/proc/{server.pid}/maps").read_text()


def test_nothing_of_grpc_is_loaded_before_the_first_connection() -> None:
    with ServerProcess("--in-memory", "--http-port", "off", "--grpc-port", "0") as server:
        assert "_upb" not in _maps(server)
        with GrpcClient(server.grpc) as client:
            client.ListTopics(pb.ListTopicsRequest())
        assert "_upb" in _maps(server)


def test_there_is_no_port_unless_asked() -> None:
    with ServerProcess("--in-memory", "--http-port", "off") as server:
        assert not server.grpc


def test_without_the_extra_the_port_says_what_to_install() -> None:
    done = subprocess.run(
        [sys.executable, "-c", _WITHOUT], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 1
    assert "pip install 'kbroker[grpc]'" in done.stderr


def test_a_port_that_is_taken_is_told_with_its_flag() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        command = [
            sys.executable,
            "-m",
            "kbroker",
            "serve",
            "--in-memory",
            "--port",
            "0",
            "--grpc-port",
            port,
        ]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1
    assert "--grpc-port" in done.stderr


@pytest.fixture
def timed() -> Iterator[tuple[ServerProcess, ControlClient]]:
    """A broker whose clock jumps when it is told."""
    port = _free_port()
    arguments = ("--http-port", "off", "--grpc-port", "0", "--control-port", str(port))
    with ServerProcess("--in-memory", *arguments) as server:
        control = ControlClient(port)
        yield server, control
        control.close()


def test_a_silent_client_with_calls_is_asked_and_closed_if_it_is_gone(
    timed: tuple[ServerProcess, ControlClient],
) -> None:
    server, control = timed
    with Http2Client(server.grpc) as raw:
        raw.call("Consume", end=False)
        raw.wait_for(events.SettingsAcknowledged)
        control.do("advance_time", ms=61_000)
        raw.wait_for(events.PingReceived)
        raw.flush()  # the answer
        for _ in range(2):
            assert raw.status(raw.call("ListTopics", pb.ListTopicsRequest()))[0] == 0
            control.do("advance_time", ms=30_000)
        raw.happened.clear()
        control.do("advance_time", ms=61_000)
        raw.wait_for(events.PingReceived)
        control.do("advance_time", ms=21_000)
        assert raw.closed_with() is None
        assert "does not answer pings" in server.log()


def test_a_client_that_wants_nothing_for_long_is_told_to_come_again(
    timed: tuple[ServerProcess, ControlClient],
) -> None:
    server, control = timed
    with GrpcClient(server.grpc) as client, Http2Client(server.grpc) as raw:
        assert raw.status(raw.call("ListTopics", pb.ListTopicsRequest()))[0] == 0
        client.ListTopics(pb.ListTopicsRequest())
        control.do("advance_time", ms=560_000)
        assert raw.closed_with() is ErrorCodes.NO_ERROR
        client.ListTopics(pb.ListTopicsRequest(), wait_for_ready=True, timeout=30)


def test_a_member_whose_client_is_gone_leaves_its_group(server: ServerProcess, client: GrpcClient) -> None:
    client.create("lost")
    other = GrpcClient(server.grpc)
    stream = other.consume("lost", group="losers", start=EARLIEST)
    stream.next("assigned")
    other.channel.close()
    eventually(lambda: client.DescribeGroup(pb.DescribeGroupRequest(group="losers")).state == "Empty")


def test_a_thousand_idle_streams_take_little(server: ServerProcess, client: GrpcClient) -> None:
    client.create("idle")
    before = server.memory_bytes()
    raws = []
    for _ in range(10):
        raw = Http2Client(server.grpc)
        subscribe = pb.ConsumeRequest(subscribe=pb.Subscribe(topics=["idle"]))
        raws.append((raw, [raw.call("Consume", subscribe, end=False) for _ in range(100)]))
    for raw, calls in raws:
        for stream_id in calls:
            raw.wait_for(events.DataReceived, lambda event, wanted=stream_id: event.stream_id == wanted)
    assert server.memory_bytes() - before < 60_000_000
    client.publish("idle", b"v")
    for raw, calls in raws:
        seen: set[int] = set()
        for event in raw.events():
            if isinstance(event, events.DataReceived):
                seen.add(event.stream_id)
                if len(seen) == len(calls):
                    break
        raw.socket.close()


def test_grpc_that_others_reach_and_that_knows_nobody_is_warned_of() -> None:
    with ServerProcess(
        *("--in-memory", "--http-port", "off", "--grpc-port", "0", "--set", "kbroker.grpc.host=0.0.0.0")
    ) as server:
        line = next(line for line in server.log().splitlines() if "anybody who reaches" in line)
        assert "GRPC on 0.0.0.0:" in line
        assert "PLAINTEXT on" not in line, "Kafka's listener is on this machine alone"


def test_where_nobody_can_log_in_the_broker_says_why() -> None:
    settings = ("listeners=SASL_PLAINTEXT://127.0.0.1:0", "sasl.enabled.mechanisms=SCRAM-SHA-256")
    given = [part for each in settings for part in ("--set", each)]
    with (
        ServerProcess(
            "--in-memory", "--http-port", "off", "--grpc-port", "0", "--user", "ada:secret", *given
        ) as server,
        GrpcClient(server.grpc, user="ada:secret") as client,
    ):
        assert "nobody can log in by gRPC" in server.log()
        with pytest.raises(grpc.RpcError) as refused:
            client.ListTopics(pb.ListTopicsRequest())
        assert refused.value.code() is grpc.StatusCode.UNAUTHENTICATED
