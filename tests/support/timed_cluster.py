"""A broker in memory whose time a test lets pass: what is due is called when it is, in order."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from heapq import heappop, heappush
from itertools import count
from typing import TypeVar

from kbroker.broker import Broker
from kbroker.catalog.memory import MemoryCatalog
from kbroker.config.settings import Settings
from kbroker.network.budget import Budget
from kbroker.pending import Pending
from kbroker.protocol.records import Record, build_batch
from kbroker.requests.resources import Resources
from kbroker.security.authorizer import Caller
from kbroker.security.principal import ANONYMOUS, Principal
from kbroker.storage.memory import MemoryDirectory
from kbroker.storage.worker import InlineWorker

T = TypeVar("T")


class TimedScheduler:
    def __init__(self, now_ms: int = 1_700_000_000_000) -> None:
        self.now_ms = now_ms
        self._due: list[tuple[int, int, Callable[[], None] | None]] = []
        self._cancelled: set[int] = set()
        self._numbers = count()

    def after(self, delay_ms: int, callback: Callable[[], None]) -> Callable[[], None]:
        number = next(self._numbers)
        heappush(self._due, (self.now_ms + delay_ms, number, callback))
        return lambda: self._cancelled.add(number)

    def soon(self, callback: Callable[[], None]) -> None:
        self.after(0, callback)

    def pass_ms(self, duration_ms: int) -> None:
        end_ms = self.now_ms + duration_ms
        while self._due and self._due[0][0] <= end_ms:
            due_ms, number, callback = heappop(self._due)
            self.now_ms = max(self.now_ms, due_ms)
            if number not in self._cancelled and callback is not None:
                callback()
        self.now_ms = end_ms


class SomeCaller:
    """Who asks, by name."""

    peer_host = "127.0.0.1"
    api_name = "test"
    throttle = None

    def __init__(self, principal: Principal = ANONYMOUS) -> None:
        self.principal = principal


class TimedCluster:
    def __init__(self, settings: Mapping[str, str] | None = None) -> None:
        self.scheduler = TimedScheduler()
        self.catalog = MemoryCatalog()
        self.logs = MemoryDirectory()
        self.settings = dict(settings or {})
        self.broker = self.start()

    def start(self) -> Broker:
        """A broker on the same catalog and logs, as after a restart."""
        self.broker = Broker(
            Settings.load(flags=self.settings),
            self.catalog,
            self.logs,
            worker=InlineWorker(),
            scheduler=self.scheduler,
            budget=Budget(1 << 30),
            clock=lambda: self.scheduler.now_ms,
        )
        return self.broker

    def resources(self, name: str | None = None) -> Resources:
        caller: Caller = SomeCaller(ANONYMOUS if name is None else Principal("User", name))
        return self.broker.resources(caller)

    def create(self, name: str, partitions: int = 1) -> None:
        self.broker.topics.create(name, partitions, {}, 0).result()

    def produce(self, topic: str, partition: int, *values: bytes, **batch: object) -> int:
        """One batch of records with these values; returns its base offset."""
        records = [Record(self.scheduler.now_ms, None, value) for value in values]
        data = build_batch(records, **batch)  # type: ignore[arg-type]
        log = self.broker.find_log(topic, partition)
        return log.append_as_leader(memoryview(bytearray(data)), self.scheduler.now_ms).base_offset

    def end_transaction(self, topic: str, partition: int, producer_id: int, *, commit: bool) -> None:
        log = self.broker.find_log(topic, partition)
        log.append_control(producer_id, 0, commit=commit, coordinator_epoch=0, now_ms=self.scheduler.now_ms)

    def result(self, answer: T | Pending[T], within_ms: int = 10_000) -> T:
        """The value, letting as much time pass as it needs."""
        passed = 0
        while isinstance(answer, Pending) and not answer.done:
            assert passed < within_ms, "the answer never came"
            self.scheduler.pass_ms(10)
            passed += 10
        return answer.result() if isinstance(answer, Pending) else answer

    def values(self, records: Sequence[object]) -> list[bytes]:
        return [each.record.value for each in records]  # type: ignore[attr-defined]
