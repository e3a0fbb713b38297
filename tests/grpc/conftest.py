from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.grpc_client import GrpcClient
from tests.support.server_process import ServerProcess


@pytest.fixture(scope="session")
def server() -> Iterator[ServerProcess]:
    """One broker in memory with gRPC, shared by the tests that leave it as it was."""
    with ServerProcess("--in-memory", "--http-port", "off", "--grpc-port", "0") as process:
        yield process


@pytest.fixture
def client(server: ServerProcess) -> Iterator[GrpcClient]:
    with GrpcClient(server.grpc) as client:
        yield client
