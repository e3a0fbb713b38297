"""A whole broker without sockets or threads: requests go through dispatch as frames, storage is in memory."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest

from kbroker.broker import Broker
from kbroker.catalog.database import Database
from kbroker.config.settings import Settings
from kbroker.network.budget import Budget
from kbroker.pending import Pending
from kbroker.protocol.codec import decode, encode_bytes
from kbroker.protocol.headers import (
    RequestHeader,
    ResponseHeader,
    request_header_version,
    response_header_version,
)
from kbroker.protocol.records import build_batch
from kbroker.protocol.records.codec import Record
from kbroker.requests.apis import BY_KEY
from kbroker.requests.dispatch import parse
from kbroker.storage.memory import MemoryDirectory
from kbroker.storage.worker import InlineWorker
from kbroker.topics.registry import Topic
from tests.support.late_logs import LateDirectory

NOW_MS = 1_700_000_000_000
on_late_logs_too = pytest.mark.parametrize(
    "logs", [MemoryDirectory, LateDirectory], ids=["memory", "late"], indirect=True
)
"""For tests that hold whether a log gives offsets at once or later."""


class Peer:
    listener = "PLAINTEXT"
    local_address = ("127.0.0.1", 19092)
    peer_host = "127.0.0.1"
    peer_port = 54321
    client_software: tuple[str, str] | None = None


class ManualScheduler:
    """Callbacks that wait until a test calls them."""

    def __init__(self) -> None:
        self.waiting: list[Callable[[], None]] = []

    def after(self, delay_ms: int, callback: Callable[[], None]) -> Callable[[], None]:
        self.waiting.append(callback)
        return lambda: self.waiting.remove(callback)

    def soon(self, callback: Callable[[], None]) -> None:
        callback()


class Cluster:
    """The broker, and a client of it."""

    def __init__(
        self, settings: Mapping[str, str], logs: MemoryDirectory | LateDirectory | None = None
    ) -> None:
        self.now_ms = NOW_MS
        self.database = Database(None)
        self.logs = logs or MemoryDirectory()
        self.scheduler = ManualScheduler()
        self.peer = Peer()
        self.broker = self.start(settings)

    def start(self, settings: Mapping[str, str]) -> Broker:
        """A broker on the same catalog and logs, as after a restart."""
        return Broker(
            Settings.load(flags=settings),
            self.database,
            self.logs,
            worker=InlineWorker(),
            scheduler=self.scheduler,
            budget=Budget(1 << 30),
            clock=lambda: self.now_ms,
        )

    def create(self, name: str, partitions: int = 1, **configs: str) -> Topic:
        given = {config.replace("_", "."): value for config, value in configs.items()}
        return self.broker.topics.create(name, partitions, given, 0).result()

    def produce(self, topic: str, *timestamps: int, partition: int = 0, **batch: Any) -> int:
        """Append one batch with one record per timestamp; returns its base offset."""
        records = build_batch([Record(timestamp, b"key", b"value") for timestamp in timestamps], **batch)
        log = self.broker.find_log(topic, partition)
        appended = log.append_as_leader(memoryview(bytearray(records)), self.now_ms)
        if appended.durable is None:
            return appended.base_offset
        self.deliver()
        assigned = appended.durable.result()
        assert assigned is not None
        return assigned.base_offset

    def deliver(self) -> None:
        """What late logs owe."""
        if isinstance(self.logs, LateDirectory):
            self.logs.deliver_all()

    def send(self, request: Any, version: int) -> Any:
        """The response, or the Pending of one, as it arrives at a client."""
        answer = self.begin(request, version)
        self.deliver()
        return answer.result() if isinstance(answer, Pending) and answer.done else answer

    def begin(self, request: Any, version: int) -> Any:
        """The same, before late logs deliver what they owe."""
        schema = type(request).__schema__
        header = RequestHeader(schema.api_key, version, 7, "test")
        frame = encode_bytes(header, request_header_version(schema.api_key, version))
        frame += encode_bytes(request, version)
        parsed = parse(memoryview(bytearray(frame)), self.peer, self.now_ms)
        answer = parsed.run(self.broker)

        def received(response: Any) -> Any:
            wire = b"".join(bytes(part) for part in parsed.frame(response))
            return _decode(schema.api_key, version, memoryview(wire)[4:])

        if not isinstance(answer, Pending):
            return received(answer)

        def settled(answer: Pending[Any]) -> Any:
            try:
                return received(answer.result())
            except Exception as error:
                return received(parsed.failed(error))

        if answer.done:
            return settled(answer)
        later: Pending[Any] = Pending(answer.abandon)
        answer.then(lambda answer: later.resolve(settled(answer)))
        return later


def _decode(api_key: int, version: int, wire: memoryview) -> Any:
    api = BY_KEY[api_key]
    module = importlib.import_module(f"kbroker.protocol.messages.{api.module}")
    header, position = decode(ResponseHeader, response_header_version(api_key, version), wire)
    assert header.correlation_id == 7
    response, end = decode(getattr(module, f"{api.name}Response"), version, wire, position)
    assert end == len(wire)
    return response


@pytest.fixture
def settings() -> dict[str, str]:
    """Overridden by tests that need other settings."""
    return {"node.id": "1"}


@pytest.fixture
def logs(request: pytest.FixtureRequest) -> MemoryDirectory | LateDirectory:
    directory: MemoryDirectory | LateDirectory = getattr(request, "param", MemoryDirectory)()
    return directory


@pytest.fixture
def cluster(settings: dict[str, str], logs: MemoryDirectory | LateDirectory) -> Iterator[Cluster]:
    cluster = Cluster(settings, logs)
    yield cluster
    cluster.database.close()
