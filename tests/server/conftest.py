from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.raw_client import RawClient
from tests.support.server_process import ServerProcess


@pytest.fixture(scope="session")
def server() -> Iterator[ServerProcess]:
    """One broker in memory, shared by the tests that leave it as it was."""
    with ServerProcess("--in-memory") as process:
        yield process


@pytest.fixture
def client(server: ServerProcess) -> Iterator[RawClient]:
    with server.client() as client:
        yield client
