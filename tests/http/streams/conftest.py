from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from typing import Any

import pytest

from tests.support.http_client import HttpClient
from tests.support.server_process import ServerProcess

_numbers = count()


@pytest.fixture
def topic(http: HttpClient) -> str:
    """One with two partitions."""
    name = f"stream-{next(_numbers)}"
    assert http.post("/topics", {"name": name, "partitions": 2}).status == 201
    return name


@pytest.fixture(scope="session")
def quick() -> Iterator[ServerProcess]:
    """A broker that soon says something to who hears nothing, and closes who takes nothing."""
    with ServerProcess(
        *("--in-memory", "--http-port", "0"),
        *("--set", "kbroker.http.stream.keep.alive.ms=50"),
        *("--set", "kbroker.http.stream.timeout.ms=1000"),
    ) as process:
        yield process


@pytest.fixture
def quick_http(quick: ServerProcess) -> Iterator[HttpClient]:
    with HttpClient(quick.url) as client:
        yield client


def publish(http: HttpClient, topic: str, *values: Any, **more: Any) -> None:
    """Each in a record of its own, in partition 0 unless said otherwise."""
    records = [{"partition": 0, **more, "value": value} for value in values]
    answer = http.post(f"/topics/{topic}/messages", records)
    assert answer.status == 200, answer


def values(records: list[Any]) -> list[Any]:
    return [record["value"] for record in records]
