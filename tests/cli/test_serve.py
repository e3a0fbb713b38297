"""`kbroker serve` as users call it, rightly and wrongly."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from kbroker.protocol.messages.api_versions import ApiVersionsRequest
from kbroker.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from tests.support.server_process import ServerProcess


def kbroker(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "kbroker", *arguments], capture_output=True, text=True, timeout=60, check=False
    )


def refused(*arguments: str) -> str:
    """What is said when it does not start; never a traceback."""
    result = kbroker("serve", *arguments)
    assert result.returncode in (1, 2), result
    assert "Traceback" not in result.stderr
    return result.stderr


def test_help_names_the_commands_and_every_flag() -> None:
    assert "serve" in kbroker("--help").stdout
    text = kbroker("serve", "--help").stdout
    for flag in ("--host", "--port", "--data", "--config", "--advertise", "--fsync", "--in-memory", "--set"):
        assert flag in text


def test_version() -> None:
    assert kbroker("--version").stdout.startswith("kbroker ")


def test_no_command_prints_usage_and_fails() -> None:
    result = kbroker()
    assert result.returncode == 2
    assert "usage: kbroker" in result.stderr


def test_a_port_in_use_is_said_so() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        said = refused("--in-memory", "--port", str(port))
    assert f"127.0.0.1:{port}" in said
    assert "in use" in said


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has these policies")
def test_it_lets_others_finish_unless_told_otherwise() -> None:
    with ServerProcess("--in-memory") as server:
        assert os.sched_getscheduler(server.pid) == os.SCHED_BATCH
    started_idle = (
        "import os, sys; os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0));"
        "os.execv(sys.executable, [sys.executable, '-m', 'kbroker', 'serve', '--in-memory', '--port', '0'])"
    )
    with subprocess.Popen([sys.executable, "-c", started_idle], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert "listening" in process.stdout.readline()
        assert os.sched_getscheduler(process.pid) == os.SCHED_IDLE
        process.terminate()


@pytest.mark.parametrize("port", ["70000", "-1", "kafka"])
def test_a_port_that_is_none_is_refused(port: str) -> None:
    assert "not a port" in refused(f"--port={port}")


def test_a_data_directory_in_use_is_said_so(tmp_path: Path) -> None:
    with ServerProcess("--data", str(tmp_path)) as server:
        said = refused("--data", str(tmp_path), "--port", "0")
        if os.path.exists("/proc/locks"):
            assert f"in use by process {server.pid}" in said
    assert str(tmp_path) in said
    assert "in use" in said or "another" in said.lower()


def test_a_data_directory_that_is_a_file_is_said_so(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("")
    assert str(file) in refused("--data", str(file), "--port", "0")


def test_an_unknown_setting_is_refused_with_the_nearest_name() -> None:
    assert "num.partitions" in refused("--in-memory", "--set", "num.partition=3")


def test_a_bad_value_is_refused() -> None:
    assert "num.partitions" in refused("--in-memory", "--set", "num.partitions=many")


def test_a_set_without_equals_is_refused() -> None:
    assert "NAME=VALUE" in refused("--in-memory", "--set", "num.partitions")


def test_an_unreadable_config_file_is_said_so(tmp_path: Path) -> None:
    assert "cannot read" in refused("--in-memory", "--config", str(tmp_path / "missing.yml"))


def test_a_host_that_does_not_exist_is_said_so() -> None:
    assert "cannot listen" in refused("--in-memory", "--host", "no-such-host.invalid", "--port", "0")


def test_settings_come_from_flags_environment_and_file_in_that_order(tmp_path: Path) -> None:
    file = tmp_path / "kbroker.yml"
    file.write_text("node.id: 3\nnum.partitions: 5\nbroker.rack: attic\n")
    arguments = ("--in-memory", "--config", str(file), "--set", "node.id=9")
    with (
        ServerProcess(*arguments, env={"KBROKER_NODE_ID": "7", "KBROKER_NUM_PARTITIONS": "4"}) as server,
        server.client() as client,
    ):
        response = client.ask(MetadataRequest(topics=[MetadataRequestTopic(name="t")]), 9)
        assert response.brokers[0].node_id == 9
        assert response.brokers[0].rack == "attic"
        assert len(response.topics[0].partitions) == 4


def test_kafkas_own_file_is_taken_with_one_warning(tmp_path: Path) -> None:
    file = tmp_path / "server.properties"
    file.write_text(
        "process.roles=broker,controller\nnode.id=5\ncontroller.quorum.bootstrap.servers=localhost:9093\n"
        "listeners=PLAINTEXT://127.0.0.1:0,CONTROLLER://:9093\ncontroller.listener.names=CONTROLLER\n"
        "num.network.threads=3\nlog.dirs=/tmp/kraft-combined-logs\nlog.retention.hours=168\n"
    )
    with ServerProcess("--in-memory", "--config", str(file), "--port", "0") as server:
        with server.client() as client:
            assert client.ask(MetadataRequest(topics=[]), 9).brokers[0].node_id == 5
        warnings = [line for line in server.log().splitlines() if " WARNING " in line]
        assert len(warnings) == 1
        assert "num.network.threads" in warnings[0]


def test_several_listeners_each_with_its_address() -> None:
    listeners = "PLAINTEXT://127.0.0.1:0,OUTSIDE://127.0.0.2:0"
    arguments = (
        "--in-memory",
        "--set",
        f"listeners={listeners}",
        "--set",
        "listener.security.protocol.map=PLAINTEXT:PLAINTEXT,OUTSIDE:PLAINTEXT",
        "--set",
        "advertised.listeners=OUTSIDE://broker.example:9094",
        "--port",
        "0",
    )
    with ServerProcess(*arguments) as server, server.client() as client:
        assert client.ask(MetadataRequest(topics=[]), 9).brokers[0].host == "127.0.0.1"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_stops_it_gracefully(tmp_path: Path, number: signal.Signals) -> None:
    server = ServerProcess("--data", str(tmp_path))
    with server:
        with server.client() as client:
            assert client.ask(ApiVersionsRequest(), 0).error_code == 0
            os.kill(server.pid, number)
            assert server.wait() == 0
        assert "Traceback" not in server.log()


def test_the_cluster_id_and_topics_outlive_a_restart(tmp_path: Path) -> None:
    server = ServerProcess("--data", str(tmp_path))
    with server:
        with server.client() as client:
            before = client.ask(MetadataRequest(topics=[MetadataRequestTopic(name="kept")]), 10)
        assert server.stop() == 0
        server.start()
        with server.client() as client:
            after = client.ask(MetadataRequest(topics=None), 10)
    assert after.cluster_id == before.cluster_id
    assert [(t.name, t.topic_id) for t in after.topics] == [(t.name, t.topic_id) for t in before.topics]
