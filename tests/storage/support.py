"""What the storage tests share: batches, a worker that runs when told, and directories of both kinds."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, settings

from kbroker.pending import Pending
from kbroker.protocol.records import (
    ControlType,
    Record,
    build_batch,
    iter_batches,
    iter_records,
    parse_control,
)
from kbroker.storage.config import DirectoryConfig, LogConfig
from kbroker.storage.directory import LogDirectory
from kbroker.storage.files import Files
from kbroker.storage.interface import Directory, Log, Slice
from kbroker.storage.memory import MemoryDirectory
from kbroker.storage.worker import InlineWorker, Worker

NOW = 1_700_000_000_000
TOPIC_ID = bytes(range(16))


def batch(
    *values: bytes | str | None,
    count: int = 1,
    timestamp: int = NOW,
    key: bytes | None = b"key",
    **fields: Any,
) -> memoryview:
    """A writable batch of these values (or of `count` made-up ones)."""
    contents = values or tuple(f"value {index}" for index in range(count))
    records = [
        Record(timestamp, key, value.encode() if isinstance(value, str) else value) for value in contents
    ]
    return memoryview(bytearray(build_batch(records, **fields)))


def idempotent(
    sequence: int, *values: str, count: int = 1, producer_id: int = 7, epoch: int = 0, **fields: Any
) -> memoryview:
    return batch(
        *values, count=count, producer_id=producer_id, producer_epoch=epoch, base_sequence=sequence, **fields
    )


def transactional(sequence: int, *values: str, **fields: Any) -> memoryview:
    return idempotent(sequence, *values, transactional=True, **fields)


def now_or(result: Any) -> Any:
    """A result that is there, also where it came as a settled Pending."""
    return result.result() if isinstance(result, Pending) else result


def read(log: Log, offset: int, max_bytes: int = 1 << 20, **options: bool) -> Slice:
    found = now_or(log.read(offset, max_bytes, **options))
    assert isinstance(found, Slice)
    return found


def records_in(found: Slice) -> list[Record]:
    data = b"".join(bytes(buffer) for buffer in found.buffers)
    records: list[Record] = []
    for position, header in iter_batches(data):
        if not header.is_control:
            records += iter_records(memoryview(data)[position : position + header.size_bytes])
    return records


def read_all(log: Log, offset: int | None = None, max_bytes: int = 1 << 20, **options: bool) -> list[Record]:
    """Every record from an offset on, as a consumer gets them."""
    position = log.log_start_offset if offset is None else offset
    records: list[Record] = []
    while found := read(log, position, max_bytes, **options):
        if not found.size_bytes:
            return records
        records += [record for record in records_in(found) if record.offset >= position]
        assert found.next_offset > position
        position = found.next_offset
    return records


def contents(log: Log, **options: Any) -> list[tuple[int, str]]:
    return [(record.offset, (record.value or b"").decode()) for record in read_all(log, **options)]


def committed_records(log: Log, max_bytes: int = 1 << 20) -> list[tuple[int, str]]:
    """What a read_committed consumer hands out: it drops what the log says was aborted."""
    position = log.log_start_offset
    records: list[tuple[int, str]] = []
    while (found := read(log, position, max_bytes, committed=True)).size_bytes:
        waiting = sorted(found.aborted, key=lambda aborted: aborted.first_offset)
        dropping: set[int] = set()
        data = b"".join(bytes(buffer) for buffer in found.buffers)
        for start, header in iter_batches(data):
            while waiting and waiting[0].first_offset <= header.last_offset:
                dropping.add(waiting.pop(0).producer_id)
            content = memoryview(data)[start : start + header.size_bytes]
            if header.is_control:
                marker = parse_control(content)
                if marker is not None and marker.type == ControlType.ABORT:
                    dropping.discard(header.producer_id)
            elif not (header.is_transactional and header.producer_id in dropping):
                records += [
                    (record.offset, (record.value or b"").decode())
                    for record in iter_records(content)
                    if record.offset >= position
                ]
        position = found.next_offset
    return records


class ManualWorker:
    """Runs what it was given when the test says so."""

    def __init__(self) -> None:
        self.jobs: list[tuple[Callable[[], Any], Pending[Any]]] = []

    def run(self, function: Callable[[], Any]) -> Pending[Any]:
        pending: Pending[Any] = Pending()
        self.jobs.append((function, pending))
        return pending

    def step(self) -> None:
        function, pending = self.jobs.pop(0)
        done = InlineWorker().run(function)
        try:
            value = done.result()
        except Exception as error:
            pending.fail(error)
        else:
            pending.resolve(value)

    def run_all(self) -> None:
        while self.jobs:
            self.step()


@dataclass
class Storage:
    """A directory that can be closed, killed and opened again, in files or in memory."""

    path: Path | None
    now_ms: int = NOW
    fsync: bool = False
    files: Files | None = None
    worker: Worker = field(default_factory=InlineWorker)
    settings: DirectoryConfig = field(default_factory=DirectoryConfig)
    directory: Directory = field(init=False)

    def __post_init__(self) -> None:
        self.open()

    @property
    def in_files(self) -> bool:
        return self.path is not None

    def open(self, files: Files | None = None) -> Directory:
        if files is not None:
            self.files = files
        if self.path is None:
            self.directory = MemoryDirectory(now_ms=self.now_ms, settings=self.settings)
        else:
            self.directory = LogDirectory.open(
                str(self.path),
                worker=self.worker,
                now_ms=self.now_ms,
                files=self.files,
                fsync=self.fsync,
                settings=self.settings,
            )
        return self.directory

    def log(
        self,
        topic: str = "topic",
        partition: int = 0,
        leader_epoch: int = 0,
        topic_id: bytes = TOPIC_ID,
        **configs: Any,
    ) -> Log:
        return self.directory.log(topic_id, topic, partition, LogConfig(**configs), leader_epoch)

    def kill(self) -> None:
        """What `kill -9` leaves: the files as they were written, and no lock."""
        kill(self.directory)

    def reopen(self) -> Directory:
        self.directory.close()
        return self.open()

    def crash(self, files: Files | None = None) -> Directory:
        self.kill()
        return self.open(files)


def kill(directory: Directory) -> None:
    assert isinstance(directory, LogDirectory)
    directory._lock.close()


def storage_settings(examples: int, steps: int = 40) -> settings:
    """Short in CI and always the same; long, and different every time, with KBROKER_TORTURE=<factor>."""
    factor = int(os.environ.get("KBROKER_TORTURE", "0"))
    return settings(
        max_examples=examples * max(factor, 1),
        stateful_step_count=steps * (2 if factor else 1),
        derandomize=not factor,
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    )
