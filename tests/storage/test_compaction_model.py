"""A compacted log against a plain list, with crashes and power losses in the middle of everything.

Whatever happens, what a reader makes of the log (the latest value of every key) is what the list says;
records keep their offsets; only what has a later value, or is a tombstone of the past, is gone.
"""

from __future__ import annotations

import random
import shutil
import tempfile
from pathlib import Path

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from kbroker.storage.config import DirectoryConfig
from kbroker.storage.directory import LogDirectory
from kbroker.storage.files import OpenFile
from kbroker.storage.interface import Buffer
from kbroker.storage.partition.log import PartitionLog
from kbroker.storage.worker import InlineWorker

from .compacting import AheadRunner, compacted, keyed
from .faults import Crash, VolatileFiles
from .support import NOW, TOPIC_ID, kill, read_all, storage_settings

SETTINGS = DirectoryConfig(
    cleaner_backoff_ms=10,
    cleaner_dedupe_buffer_bytes=24 * 23,  # several runs are needed for what is written at once
    retention_check_interval_ms=3_600_000,
    retention_initial_delay_ms=3_600_000,
    flush_offset_checkpoint_interval_ms=500,
)
RETENTION_MS = 300


class CrashingFiles(VolatileFiles):
    """The process is killed after so many changes of the disk."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.left = -1

    def _count(self) -> None:
        if self.left == 0:
            raise Crash
        if self.left > 0:
            self.left -= 1

    def write_at(self, file: OpenFile, data: Buffer, position: int) -> int:
        self._count()
        return super().write_at(file, data, position)

    def rename(self, source: str, target: str) -> None:
        self._count()
        super().rename(source, target)

    def unlink(self, path: str) -> None:
        self._count()
        super().unlink(path)

    def sync(self, file: OpenFile) -> None:
        self._count()
        super().sync(file)


class CompactionModel(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        memory = Path("/dev/shm")
        self.parent = Path(tempfile.mkdtemp(prefix="kbroker-model-", dir=memory if memory.exists() else None))
        self.now_ms = NOW
        self.history: list[tuple[str, str | None, int]] = []  # key, value, timestamp by offset
        self.lives = 0
        self.numbers = 0
        self.epoch = 0

    def teardown(self) -> None:
        kill(self.directory)
        shutil.rmtree(self.parent)

    @initialize(segment_bytes=st.integers(250, 900), ratio=st.sampled_from([0.0, 0.3]))
    def begin(self, segment_bytes: int, ratio: float) -> None:
        self.config = compacted(
            segment_bytes=segment_bytes,
            min_cleanable_dirty_ratio=ratio,
            delete_retention_ms=RETENTION_MS,
            flush_ms=100,
        )
        self.path = self.parent / "0"
        self.open()

    def open(self) -> None:
        self.files = CrashingFiles(self.path)
        self.files.adopt()
        self.directory = LogDirectory.open(
            str(self.path),
            worker=InlineWorker(),
            now_ms=self.now_ms,
            files=self.files,
            settings=SETTINGS,
            runner=AheadRunner(self.files),
        )
        self.epoch += not self.directory.clean_start
        log = self.directory.log(TOPIC_ID, "topic", 0, self.config, self.epoch)
        assert isinstance(log, PartitionLog)
        self.log = log

    @rule(batches=st.integers(1, 25), seed=st.integers(0, 2**32))
    def append(self, batches: int, seed: int) -> None:
        chance = random.Random(seed)
        for _ in range(batches):
            pairs: list[tuple[str, str | None]] = []
            for _ in range(chance.randrange(1, 5)):
                self.numbers += 1
                value = f"value {self.numbers}" if chance.random() < 0.8 else None
                pairs.append((f"k{chance.randrange(20)}", value))
            data = keyed(*pairs, timestamp=self.now_ms, codec=chance.choice((0, 0, 4)))
            assert self.log.append_as_leader(data, self.now_ms).base_offset == len(self.history)
            self.history += [(key, value, self.now_ms) for key, value in pairs]

    @rule(elapsed_ms=st.sampled_from([1, 20, 400]), ticks=st.integers(1, 12))
    def compact(self, elapsed_ms: int, ticks: int) -> None:
        self.now_ms += elapsed_ms
        for _ in range(ticks):
            self.now_ms += 10
            self.directory.tick(self.now_ms)
        self.compare()

    @rule(count=st.integers(0, 80), power=st.booleans(), seed=st.integers(0, 2**32))
    def crash_in_the_middle_of_it(self, count: int, power: bool, seed: int) -> None:
        self.files.left = count
        try:
            for _ in range(8):
                self.now_ms += 20
                self.directory.tick(self.now_ms)
        except Crash:
            pass
        self.files.left = -1
        if power:
            self.lose_power(seed)
        else:
            self.crash()

    @rule()
    def restart(self) -> None:
        self.directory.close()
        self.open()
        assert self.directory.clean_start
        self.compare()

    @rule()
    def crash(self) -> None:
        kill(self.directory)
        self.open()
        assert self.log.log_end_offset == len(self.history)
        self.compare()

    @rule(seed=st.integers(0, 2**32))
    def lose_power(self, seed: int) -> None:
        safe = self.log.recovery_point
        kill(self.directory)
        self.lives += 1
        target = self.parent / str(self.lives)
        self.files.lose_power(target, random.Random(seed))
        shutil.rmtree(self.path)
        self.path = target
        self.open()
        assert safe <= self.log.log_end_offset <= len(self.history)
        del self.history[self.log.log_end_offset :]
        self.compare()

    @precondition(lambda self: len(self.history) > 3)
    @rule(position=st.floats(0, 1))
    def read_from_anywhere(self, position: float) -> None:
        offset = int(position * len(self.history))
        assert all(record.offset >= offset for record in read_all(self.log, offset, 500))

    def compare(self) -> None:
        assert self.log.log_end_offset == len(self.history)
        assert self.log.log_start_offset == 0
        found: dict[int, tuple[str, str | None, int]] = {}
        for record in read_all(self.log, max_bytes=700):
            assert record.key is not None
            assert record.offset not in found
            value = None if record.value is None else record.value.decode()
            found[record.offset] = (record.key.decode(), value, record.timestamp)
        latest = {key: offset for offset, (key, _, _) in enumerate(self.history)}
        for offset, entry in found.items():
            assert self.history[offset] == entry
        for offset, (key, value, timestamp) in enumerate(self.history):
            if offset not in found and latest[key] == offset:
                assert value is None, "the latest value of a key is gone"
                assert self.now_ms >= timestamp + RETENTION_MS, "a tombstone went too early"
        assert view(found.values()) == view(self.history)


def view(entries: object) -> dict[str, str]:
    """What a reader makes of a log."""
    values: dict[str, str] = {}
    for key, value, _ in entries:  # type: ignore[attr-defined]
        if value is None:
            values.pop(key, None)
        else:
            values[key] = value
    return values


CompactionModel.TestCase.settings = storage_settings(60, 40)


@pytest.mark.usefixtures("quiet_log")
class TestCompactionModel(CompactionModel.TestCase):  # type: ignore[name-defined,misc]
    pass
