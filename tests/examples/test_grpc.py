"""The examples of gRPC run, in Python and in Node."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from kbroker.grpc import PROTO
from tests.examples.test_examples import EXAMPLES, run
from tests.support.node_packages import node_packages
from tests.support.server_process import ServerProcess

pytestmark = pytest.mark.slow

GRPC = EXAMPLES / "grpc"
NODE_PACKAGES = ("@grpc/grpc-js@1.14.0", "@grpc/proto-loader@0.8.0")
SAID = "100 orders, 4950 due, lag 0"


@pytest.fixture
def server() -> Iterator[ServerProcess]:
    with ServerProcess("--in-memory", "--http-port", "off", "--grpc-port", "0") as process:
        yield process


def test_python(server: ServerProcess) -> None:
    assert SAID in run([sys.executable, "orders.py"], GRPC, KBROKER_GRPC=server.grpc)


def test_node(server: ServerProcess, tmp_path: Path) -> None:
    (tmp_path / "node_modules").symlink_to(node_packages(*NODE_PACKAGES) / "node_modules")
    shutil.copy(GRPC / "orders.mjs", tmp_path)
    said = run(["node", "orders.mjs"], tmp_path, KBROKER_GRPC=server.grpc, KBROKER_PROTO=str(PROTO))
    assert SAID in said
