from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.http_client import HttpClient
from tests.support.server_process import ServerProcess


@pytest.fixture(scope="session")
def server() -> Iterator[ServerProcess]:
    """One broker in memory with HTTP, shared by the tests that leave it as it was."""
    with ServerProcess("--in-memory", "--http-port", "0") as process:
        yield process


@pytest.fixture
def http(server: ServerProcess) -> Iterator[HttpClient]:
    with HttpClient(server.url) as client:
        yield client
