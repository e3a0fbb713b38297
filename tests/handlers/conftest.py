"""A broker without sockets or threads: requests go through a session as frames, storage is in memory."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest

from kbroker.broker import Broker
from kbroker.catalog.interface import Catalog
from kbroker.catalog.memory import MemoryCatalog
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
from kbroker.requests.answers import Buffers, Deferred
from kbroker.requests.apis import BY_KEY
from kbroker.requests.session import Requests, Session
from kbroker.storage.memory import MemoryDirectory
from kbroker.storage.worker import InlineWorker
from kbroker.topics.registry import Topic
from tests.support.late_logs import LateDirectory

NOW_MS = 1_700_000_000_000
on_late_logs_too = pytest.mark.parametrize(
    "logs", [MemoryDirectory, LateDirectory], ids=["memory", "late"], indirect=True
)
"""For tests that hold whether a log gives offsets at once or later."""


class ManualScheduler:
    """Callbacks that wait until a test calls them."""

    def __init__(self) -> None:
        self.waiting: list[Callable[[], None]] = []
        self._soon: list[Callable[[], None]] = []

    def after(self, delay_ms: int, callback: Callable[[], None]) -> Callable[[], None]:
        self.waiting.append(callback)
        return lambda: self.waiting.remove(callback)

    def soon(self, callback: Callable[[], None]) -> None:
        """At once, but one after the other: on a slow machine long requests take hundreds of turns."""
        self._soon.append(callback)
        if len(self._soon) > 1:
            return
        while self._soon:
            try:
                self._soon[0]()
            finally:
                self._soon.pop(0)


class Cluster:
    """The broker, and a client of it."""

    _connected: tuple[Broker, Session] | None = None

    def __init__(
        self, settings: Mapping[str, str], logs: MemoryDirectory | LateDirectory | None = None
    ) -> None:
        self.now_ms = NOW_MS
        self.catalog: Catalog = MemoryCatalog()
        self.logs = logs or MemoryDirectory()
        self.scheduler = ManualScheduler()
        self.broker = self.start(settings)

    def start(self, settings: Mapping[str, str]) -> Broker:
        """A broker on the same catalog and logs, as after a restart."""
        return Broker(
            Settings.load(flags=settings),
            self.catalog,
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

    def end_offset(self, topic: str, partition: int = 0) -> int:
        return self.broker.find_log(topic, partition).log_end_offset

    def send(self, request: Any, version: int) -> Any:
        """The response, or the Pending of one, as it arrives at a client; None if there is no answer."""
        answer = self.begin(request, version)
        self.deliver()
        return answer.result() if isinstance(answer, Pending) and answer.done else answer

    def begin(self, request: Any, version: int) -> Any:
        """The same, before late logs deliver what they owe."""
        schema = type(request).__schema__
        header = RequestHeader(schema.api_key, version, 7, "test")
        frame = encode_bytes(header, request_header_version(schema.api_key, version))
        return self.send_frame(frame + encode_bytes(request, version), schema.api_key, version)

    def send_frame(self, frame: bytes, api_key: int, answer_version: int) -> Any:
        """The same for a frame as it is, whose answer is of this version."""
        answer = self.session().execute(memoryview(bytearray(frame)), self.now_ms)

        def received(answer: Buffers) -> Any:
            wire = b"".join(bytes(part) for part in answer)
            return _decode(api_key, answer_version, memoryview(wire)[4:])

        while isinstance(answer, Deferred):
            if not answer.answer.done:
                return _later(answer, received)
            answer = answer.framed()
        return received(answer) if answer else None

    def session(self) -> Session:
        """The client's, with the broker as it was started last."""
        if self._connected is None or self._connected[0] is not self.broker:
            session = Session(Requests(self.broker), "PLAINTEXT", ("127.0.0.1", 19092), ("127.0.0.1", 54321))
            self._connected = (self.broker, session)
        return self._connected[1]


def _later(deferred: Deferred, received: Callable[[Buffers], Any]) -> Pending[Any]:
    later: Pending[Any] = Pending(deferred.answer.abandon)

    def settled(_: Pending[Any], deferred: Deferred = deferred) -> None:
        answer = deferred.framed()
        if isinstance(answer, Deferred):
            following = answer
            answer.answer.then(lambda _: settled(_, following))
        else:
            later.resolve(received(answer))

    deferred.answer.then(settled)
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
    cluster.catalog.close()
