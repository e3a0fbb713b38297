"""A log in memory and a log in files, given the same: they answer the same, errors included."""

from __future__ import annotations

import logging
import os
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from kbroker.protocol.records import RecordError
from kbroker.storage.config import DirectoryConfig
from kbroker.storage.errors import StorageError
from kbroker.storage.interface import Log

from .faults import QuickFiles
from .support import (
    NOW,
    Storage,
    batch,
    committed_records,
    contents,
    idempotent,
    kill,
    now_or,
    read,
    storage_settings,
    transactional,
)

SETTINGS = DirectoryConfig(
    retention_check_interval_ms=50, retention_initial_delay_ms=50, cleaner_enable=False
)
PRODUCERS = st.integers(1, 3)
EPOCHS = st.integers(0, 2)
SEQUENCES = st.integers(0, 6)
POSITIONS = st.floats(0, 1.1)


def outcome(action: Callable[[], Any]) -> Any:
    try:
        return action()
    except (StorageError, RecordError) as error:
        return type(error)


class LogTwins(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        logging.getLogger("kbroker.storage").setLevel(logging.CRITICAL + 1)
        shared = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
        self.path = Path(tempfile.mkdtemp(prefix="kbroker-twins-", dir=shared))
        self.now_ms = NOW
        self.epoch = 0

    def teardown(self) -> None:
        kill(self.twins[0].directory)
        shutil.rmtree(self.path)
        logging.getLogger("kbroker.storage").setLevel(logging.NOTSET)

    @initialize(
        segment_bytes=st.integers(300, 1500),
        retention_ms=st.sampled_from([-1, 100, 1000]),
        retention_bytes=st.sampled_from([-1, 1000]),
        timestamp_type=st.sampled_from(["CreateTime", "LogAppendTime"]),
        policy=st.sampled_from([("delete",), ("compact",)]),
    )
    def begin(
        self,
        segment_bytes: int,
        retention_ms: int,
        retention_bytes: int,
        timestamp_type: str,
        policy: tuple[str],
    ) -> None:
        self.configs = {
            "segment_bytes": segment_bytes,
            "retention_ms": retention_ms,
            "retention_bytes": retention_bytes,
            "message_timestamp_type": timestamp_type,
            "cleanup_policy": frozenset(policy),
            "index_interval_bytes": 100,
        }
        self.twins = [
            Storage(self.path / "data", files=QuickFiles(), settings=SETTINGS),
            Storage(None, settings=SETTINGS),
        ]

    def logs(self) -> list[Log]:
        return [twin.log(leader_epoch=self.epoch, **self.configs) for twin in self.twins]

    def same(self, action: Callable[[Log], Any]) -> Any:
        answers = [outcome(lambda log=log: action(log)) for log in self.logs()]
        assert answers[0] == answers[1]
        return answers[0]

    # what clients do

    @rule(size=st.integers(0, 300), count=st.integers(1, 4), age_ms=st.integers(0, 50), keyed=st.booleans())
    def append(self, size: int, count: int, age_ms: int, keyed: bool) -> None:
        self.send(
            lambda: batch(
                *("x" * size for _ in range(count)),
                timestamp=self.now_ms - age_ms,
                key=b"k" if keyed else None,
            )
        )

    @rule(producer_id=PRODUCERS, epoch=EPOCHS, sequence=SEQUENCES, count=st.integers(1, 2))
    def append_idempotent(self, producer_id: int, epoch: int, sequence: int, count: int) -> None:
        self.send(lambda: idempotent(sequence, count=count, producer_id=producer_id, epoch=epoch))

    @rule(producer_id=PRODUCERS, epoch=EPOCHS, sequence=SEQUENCES)
    def append_transactional(self, producer_id: int, epoch: int, sequence: int) -> None:
        self.send(lambda: transactional(sequence, "t", producer_id=producer_id, epoch=epoch))

    @rule(
        first=st.sampled_from([None, 0, 1, 3]),
        steps=st.lists(st.sampled_from([1, 1, 1, 1, 0, 2]), min_size=1, max_size=5),
        producer_id=PRODUCERS,
        kind=st.sampled_from([idempotent, idempotent, transactional]),
        strange=st.sampled_from([None, None, None, 0, 1, 2]),
        files_together=st.booleans(),
    )
    def append_together(
        self,
        first: int | None,
        steps: list[int],
        producer_id: int,
        kind: Callable[..., memoryview],
        strange: int | None,
        files_together: bool,
    ) -> None:
        """One log takes in one go what the other takes one by one."""

        def batches() -> list[memoryview]:
            made, sequence = [], first or 0
            for number, step in enumerate(steps):
                if first is None:
                    made.append(batch(f"{number}" * 40, timestamp=self.now_ms))
                else:
                    made.append(kind(sequence, f"{number}" * 40, producer_id=producer_id))
                sequence += step
                if number == strange:
                    made[-1][-1] ^= 1
            return made

        def one_by_one(log: Log, made: list[memoryview]) -> list[Any]:
            return [
                outcome(lambda each=each: log.append_as_leader(each, self.now_ms).base_offset)
                for each in made
            ]

        one, other = self.logs() if files_together else reversed(self.logs())
        made = batches()
        offsets = one.append_run(made, self.now_ms)
        assert (one_by_one(one, made) if offsets is None else offsets) == one_by_one(other, batches())

    def send(self, data: Callable[[], memoryview]) -> None:
        self.same(lambda log: log.append_as_leader(data(), self.now_ms))

    @rule(
        producer_id=PRODUCERS,
        epoch=EPOCHS,
        commit=st.booleans(),
        coordinator_epoch=st.integers(0, 1),
        version=st.sampled_from([0, 2]),
    )
    def end_transaction(
        self, producer_id: int, epoch: int, commit: bool, coordinator_epoch: int, version: int
    ) -> None:
        self.same(
            lambda log: log.append_control(
                producer_id,
                epoch,
                commit=commit,
                coordinator_epoch=coordinator_epoch,
                now_ms=self.now_ms,
                transaction_version=version,
            )
        )

    @rule(position=POSITIONS, committed=st.booleans())
    def read_one_batch(self, position: float, committed: bool) -> None:
        def one(log: Log) -> object:
            found = read(log, int(position * log.log_end_offset), 1, committed=committed)
            return found._replace(
                buffers=[bytes(buffer) for buffer in found.buffers], aborted=list(found.aborted)
            )

        self.same(one)

    @rule()
    def read_everything(self) -> None:
        self.same(lambda log: contents(log, max_bytes=500))
        self.same(lambda log: committed_records(log, max_bytes=500))

    @rule(shift_ms=st.integers(-60, 10))
    def find_a_timestamp(self, shift_ms: int) -> None:
        self.same(lambda log: now_or(log.offset_for_timestamp(self.now_ms + shift_ms)))
        self.same(lambda log: now_or(log.max_timestamp_offset()))

    @rule(position=POSITIONS)
    def delete_records(self, position: float) -> None:
        self.same(lambda log: log.delete_records_before(int(position * log.log_end_offset)))

    @rule()
    def raise_the_leader_epoch(self) -> None:
        self.epoch += 1

    @rule(elapsed_ms=st.sampled_from([1, 60, 500]))
    def wait(self, elapsed_ms: int) -> None:
        self.now_ms += elapsed_ms
        for twin in self.twins:
            twin.directory.tick(self.now_ms)

    @invariant()
    def they_agree(self) -> None:
        if hasattr(self, "twins"):
            self.same(
                lambda log: (
                    log.log_start_offset,
                    log.last_stable_offset,
                    log.high_watermark,
                    log.log_end_offset,
                    log.size_bytes,
                    log.latest_epoch,
                    sorted(log.producers()),
                    [log.end_offset_for_epoch(epoch) for epoch in range(self.epoch + 2)],
                )
            )


LogTwins.TestCase.settings = storage_settings(100, 40)
TestLogTwins = LogTwins.TestCase
