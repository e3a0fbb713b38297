"""@grpc/grpc-js, gRPC's client for Node, which shares no code with the one for Python."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from kbroker.grpc import PROTO
from tests.support.certificates import Certificates, as_arguments
from tests.support.node_packages import node_packages
from tests.support.server_process import ServerProcess

PACKAGES = ("@grpc/grpc-js@1.14.0", "@grpc/proto-loader@0.8.0")
SAID = [
    ["topic", 1],
    ["missing", 5, True],
    ["deadline", 4],
    ["large", 0],
    ["fetched", 3_000_000],
    ["too large", 8],
    ["zipped", 1],
    ["many", 250],
    ["consumed", 2, 2],
]
PORTS = ("--http-port", "off", "--grpc-port", "0")


@pytest.fixture
def program(tmp_path: Path) -> Path:
    (tmp_path / "node_modules").symlink_to(node_packages(*PACKAGES) / "node_modules")
    return Path(shutil.copy(Path(__file__).with_name("client.mjs"), tmp_path))


def said(program: Path, server: ServerProcess, **environment: str) -> list[list[object]]:
    done = subprocess.run(
        ["node", str(program)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        env={**os.environ, "KBROKER_GRPC": server.grpc, "KBROKER_PROTO": str(PROTO), **environment},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_all_kinds_of_calls(program: Path) -> None:
    with ServerProcess("--in-memory", *PORTS) as server:
        assert said(program, server) == SAID


def test_within_tls_and_with_a_password(program: Path, tmp_path: Path) -> None:
    certificates = Certificates(tmp_path / "certificates")
    settings = certificates.broker_settings() | {
        "listeners": "SASL_SSL://127.0.0.1:0",
        "sasl.enabled.mechanisms": "SCRAM-SHA-256",
    }
    arguments = ("--port", "0", "--user", "ada:secret", *as_arguments(settings))
    with ServerProcess("--in-memory", *PORTS, *arguments) as server:
        told = said(program, server, KBROKER_CA=str(certificates.ca), KBROKER_USER="ada:secret")
        assert told == SAID
