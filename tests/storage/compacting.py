"""What the tests of compaction share: keyed batches, directories that compact when told, what a log holds."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from kbroker.protocol.records import BatchHeader, Record, build_batch, iter_batches
from kbroker.storage.compaction.jobs import CleaningJob, Event
from kbroker.storage.compaction.runner import InlineRunner, Runner
from kbroker.storage.config import DELETE, MAX_LONG, DirectoryConfig, LogConfig
from kbroker.storage.directory import LogDirectory
from kbroker.storage.files import Files
from kbroker.storage.interface import Directory, Log
from kbroker.storage.memory import MemoryDirectory
from kbroker.storage.worker import InlineWorker

from .faults import QuickFiles
from .support import NOW, TOPIC_ID, kill, read, read_all

BACKOFF_MS = 1000
SETTINGS = DirectoryConfig(
    cleaner_backoff_ms=BACKOFF_MS,
    retention_check_interval_ms=3_600_000,
    retention_initial_delay_ms=3_600_000,
    flush_offset_checkpoint_interval_ms=3_600_000,
)
Pair = tuple[str | None, str | None]


def compacted(**configs: Any) -> LogConfig:
    """A topic that is compacted whenever something is dirty, in segments of a few batches."""
    defaults: dict[str, Any] = {
        "cleanup_policy": frozenset(("compact",)),
        "min_cleanable_dirty_ratio": 0.0,
        "segment_bytes": 300,
        "index_interval_bytes": 100,
        "delete_retention_ms": 60_000,
        "file_delete_delay_ms": 0,
        "flush_ms": MAX_LONG,
    }
    return LogConfig(**{**defaults, **configs})


def keyed(*pairs: Pair, timestamp: int = NOW, **fields: Any) -> memoryview:
    """A writable batch of keys and values; None as a value is a tombstone."""
    records = [
        Record(timestamp, None if key is None else key.encode(), None if value is None else value.encode())
        for key, value in pairs
    ]
    return memoryview(bytearray(build_batch(records, **fields)))


class AheadRunner(InlineRunner):
    """Has the next segment cleaned when it tells of one, as a process of its own may."""

    def __init__(self, files: Files) -> None:
        super().__init__(files)
        self._ahead: list[Event] = []

    def start(self, job: CleaningJob) -> None:
        super().start(job)
        self._ahead = []

    def next_event(self) -> Event | None:
        while len(self._ahead) < 2 and (event := super().next_event()) is not None:
            self._ahead.append(event)
        return self._ahead.pop(0) if self._ahead else None


@dataclass
class Compacting:
    """One partition of a directory in files or in memory, with time in the test's hands."""

    path: Path | None
    config: LogConfig
    files: Files | None = None
    settings: DirectoryConfig = SETTINGS
    runner: Runner | None = None
    now_ms: int = NOW

    def __post_init__(self) -> None:
        self.open()

    def open(self) -> None:
        self.directory: Directory
        if self.path is None:
            self.directory = MemoryDirectory(now_ms=self.now_ms, settings=self.settings)
        else:
            files = self.files if self.files is not None else QuickFiles()
            self.directory = LogDirectory.open(
                str(self.path),
                worker=InlineWorker(),
                now_ms=self.now_ms,
                files=files,
                settings=self.settings,
                runner=self.runner if self.runner is not None else AheadRunner(files),
            )
        self.directory.config_source = lambda _: self.config
        self.log: Log = self.directory.log(TOPIC_ID, "topic", 0, self.config, 0)

    def crash(self) -> None:
        kill(self.directory)
        self.open()

    def restart(self) -> None:
        self.directory.close()
        self.open()

    def append(self, *pairs: Pair, **fields: Any) -> int:
        """A record without key comes from the time before the topic was compacted."""
        fields.setdefault("timestamp", self.now_ms)
        config = self.log.config
        if any(key is None for key, _ in pairs):
            self.log.config = replace(config, cleanup_policy=frozenset((DELETE,)))
        appended = self.log.append_as_leader(keyed(*pairs, **fields), self.now_ms)
        self.log.config = config
        return appended.base_offset

    def mark(self, *, commit: bool, producer_id: int = 7, epoch: int = 0) -> None:
        self.log.append_control(producer_id, epoch, commit=commit, coordinator_epoch=0, now_ms=self.now_ms)

    def roll(self) -> None:
        """End the active segment, as segment.ms would; the new one begins with a record of its own."""
        log: Any = self.log
        log._roll(self.now_ms)
        self.append(("active", "x"))

    def compact(self, elapsed_ms: int = BACKOFF_MS) -> None:
        """Let time pass until nothing is left to be compacted."""
        self.now_ms += elapsed_ms
        while True:
            before = self.runs
            self.directory.tick(self.now_ms)
            if self.runs == before:
                return
            self.now_ms += BACKOFF_MS

    @property
    def runs(self) -> int:
        directory: Any = self.directory
        runs: int = directory.compaction.runs
        return runs

    def contents(self) -> list[tuple[int, str | None, str | None]]:
        """Offset, key and value of every record but the active segment's."""
        return [
            (record.offset, _text(record.key), _text(record.value))
            for record in read_all(self.log)
            if record.key != b"active"
        ]

    def headers(self) -> list[BatchHeader]:
        """Of all batches, those without records among them."""
        found: list[BatchHeader] = []
        position = self.log.log_start_offset
        while (part := read(self.log, position)).size_bytes:
            data = b"".join(bytes(buffer) for buffer in part.buffers)
            found += [header for _, header in iter_batches(data)]
            position = part.next_offset
        return found

    def segments(self) -> list[int]:
        log: Any = self.log
        return [segment.base_offset for segment in log.segments]


def _text(data: bytes | None) -> str | None:
    return None if data is None else data.decode()
