"""A file-backed log against a plain list: appends, reads, rolls, retention, cuts, crashes, restarts.

After `kill -9` the log is what it was. After a power loss it ends somewhere between what it said was on disk
and what was written, and up to there it is the same.
"""

from __future__ import annotations

import logging
import os
import random
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from kbroker.storage.config import DirectoryConfig, LogConfig
from kbroker.storage.directory import LogDirectory
from kbroker.storage.partition.log import PartitionLog

from .faults import VolatileFiles
from .support import (
    NOW,
    TOPIC_ID,
    ManualWorker,
    batch,
    committed_records,
    idempotent,
    kill,
    now_or,
    read,
    read_all,
    storage_settings,
    transactional,
)

SETTINGS = DirectoryConfig(
    retention_check_interval_ms=50, retention_initial_delay_ms=50, flush_offset_checkpoint_interval_ms=200
)
IDEMPOTENT = 7
TRANSACTIONAL = (20, 21)
MARKER = None


@dataclass
class Transaction:
    producer_id: int
    first_offset: int
    offsets: list[int]
    marker: int = -1
    aborted: bool = False


class LogModel(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        logging.getLogger("kbroker.storage").setLevel(logging.CRITICAL + 1)
        shared = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
        self.parent = Path(tempfile.mkdtemp(prefix="kbroker-model-", dir=shared))
        self.now_ms = NOW
        self.history: list[tuple[str | None, int]] = []  # by offset, also of what was deleted since
        self.epochs: list[int] = []  # by offset
        self.transactions: list[Transaction] = []
        self.start = 0
        self.published_start = 0
        self.epoch = 0
        self.lives = 0
        self.numbers = 0

    def teardown(self) -> None:
        kill(self.directory)
        shutil.rmtree(self.parent)
        logging.getLogger("kbroker.storage").setLevel(logging.NOTSET)

    # opening

    @initialize(
        segment_bytes=st.integers(700, 2000),
        interval=st.sampled_from([0, 150, 4096]),
        fsync=st.booleans(),
        retention=st.sampled_from([-1, 500, 2000]),
    )
    def begin(self, segment_bytes: int, interval: int, fsync: bool, retention: int) -> None:
        self.config = LogConfig(
            segment_bytes=segment_bytes,
            index_interval_bytes=interval,
            flush_messages=1 if fsync else 2**63 - 1,
            retention_ms=retention,
            file_delete_delay_ms=100,
        )
        self.path = self.parent / "0"
        self.open()

    def open(self, *, clean: bool | None = None) -> None:
        self.files = VolatileFiles(self.path)
        self.files.adopt()
        self.worker = ManualWorker()
        self.directory = LogDirectory.open(
            str(self.path), worker=self.worker, now_ms=self.now_ms, files=self.files, settings=SETTINGS
        )
        if clean is not None and self.history:
            assert self.directory.clean_start == clean
        if not self.directory.clean_start:
            self.epoch += 1
        log = self.directory.log(TOPIC_ID, "topic", 0, self.config, self.epoch)
        assert isinstance(log, PartitionLog)
        self.log = log

    # what clients do

    @rule(count=st.integers(1, 4), size=st.integers(0, 120))
    def append(self, count: int, size: int) -> None:
        values = [self.next_value(size) for _ in range(count)]
        appended = self.log.append_as_leader(batch(*values, timestamp=self.now_ms), self.now_ms)
        assert appended.base_offset == len(self.history)
        self.record(*values)

    @rule(size=st.integers(0, 120))
    def append_idempotent(self, size: int) -> None:
        value = self.next_value(size)
        data = idempotent(self.next_sequence(IDEMPOTENT), value, timestamp=self.now_ms)
        assert not self.log.append_as_leader(data, self.now_ms).duplicate
        self.record(value)

    @rule(count=st.integers(2, 5), size=st.integers(0, 120), known=st.booleans())
    def append_together(self, count: int, size: int, known: bool) -> None:
        values = [self.next_value(size) for _ in range(count)]
        sequence = self.next_sequence(IDEMPOTENT)
        made = [
            idempotent(sequence + number, value, timestamp=self.now_ms)
            if known
            else batch(value, timestamp=self.now_ms)
            for number, value in enumerate(values)
        ]
        offsets = self.log.append_run(made, self.now_ms)
        if offsets is None:
            offsets = [self.log.append_as_leader(each, self.now_ms).base_offset for each in made]
        assert offsets == [len(self.history) + number for number in range(count)]
        self.record(*values)

    @rule()
    def append_again(self) -> None:
        sequence = self.next_sequence(IDEMPOTENT) - 1
        if sequence >= 0:
            data = idempotent(sequence, "sent again", timestamp=self.now_ms)
            assert self.log.append_as_leader(data, self.now_ms).duplicate

    @rule(producer_id=st.sampled_from(TRANSACTIONAL), size=st.integers(0, 120))
    def append_transactional(self, producer_id: int, size: int) -> None:
        value = self.next_value(size)
        offset = len(self.history)
        sequence = self.next_sequence(producer_id)
        data = transactional(sequence, value, producer_id=producer_id, timestamp=self.now_ms)
        assert self.log.append_as_leader(data, self.now_ms).base_offset == offset
        self.record(value)
        current = self.open_transaction(producer_id)
        if current is None:
            self.transactions.append(Transaction(producer_id, offset, [offset]))
        else:
            current.offsets.append(offset)

    @precondition(lambda self: any(transaction.marker < 0 for transaction in self.transactions))
    @rule(which=st.integers(0, 1), commit=st.booleans())
    def end_transaction(self, which: int, commit: bool) -> None:
        current = self.open_transaction(TRANSACTIONAL[which]) or self.open_transaction(
            TRANSACTIONAL[1 - which]
        )
        if current is None or not self.log.has_ongoing_transaction(current.producer_id, 0):
            return  # its data was deleted, and a restart forgot it
        current.marker = len(self.history)
        current.aborted = not commit
        self.log.append_control(
            current.producer_id, 0, commit=commit, coordinator_epoch=0, now_ms=self.now_ms
        )
        self.record(MARKER)

    def open_transaction(self, producer_id: int) -> Transaction | None:
        for transaction in self.transactions:
            if transaction.producer_id == producer_id and transaction.marker < 0:
                return transaction
        return None

    def next_sequence(self, producer_id: int) -> int:
        """What the producer sends next: it has seen its batches acknowledged, or asked the log."""
        known = {state.producer_id: state.last_sequence for state in self.log.producers()}
        return known.get(producer_id, -1) + 1

    @rule(steps=st.integers(1, 3))
    def let_the_worker_work(self, steps: int) -> None:
        for _ in range(min(steps, len(self.worker.jobs))):
            self.worker.step()

    def next_value(self, size: int) -> str:
        self.numbers += 1
        return f"{self.numbers} {'x' * size}"

    def record(self, *values: str | None) -> None:
        self.history += [(value, self.now_ms) for value in values]
        self.epochs += [self.epoch] * len(values)

    @rule(position=st.floats(0, 1), max_bytes=st.integers(0, 2000))
    def read_somewhere(self, position: float, max_bytes: int) -> None:
        self.worker.run_all()
        end = len(self.history)
        offset = self.start + int(position * (end - self.start))
        found = read(self.log, offset, max_bytes)
        if offset == end:
            assert found.size_bytes == 0
        else:
            assert found.next_offset > offset

    @rule()
    def read_committed(self) -> None:
        self.worker.run_all()
        stable = min(
            (transaction.first_offset for transaction in self.transactions if transaction.marker < 0),
            default=len(self.history),
        )
        assert self.log.last_stable_offset == max(stable, self.start)
        aborted = {o for t in self.transactions if t.aborted for o in t.offsets}
        expected = [
            (offset, self.history[offset][0])
            for offset in range(self.start, self.log.last_stable_offset)
            if offset not in aborted and self.history[offset][0] is not MARKER
        ]
        assert committed_records(self.log, max_bytes=600) == expected

    def forget_the_deleted(self) -> None:
        """Of an open transaction, a restart knows only what is not below the log start."""
        known = {state.producer_id: state.current_txn_start_offset for state in self.log.producers()}
        for transaction in [each for each in self.transactions if each.marker < 0]:
            first = known.get(transaction.producer_id, -1)
            start = self.log.log_start_offset
            left = [offset for offset in transaction.offsets if offset >= start]
            if first >= 0 or left:
                assert max(first, start) in (max(transaction.first_offset, start), min(left, default=start))
            transaction.first_offset = first
            if first < 0:
                self.transactions.remove(transaction)

    @rule(position=st.floats(0, 1))
    def find_a_timestamp(self, position: float) -> None:
        self.worker.run_all()
        first = self.history[0][1] if self.history else NOW
        wanted = int(first + position * (self.now_ms + 1 - first))
        found = now_or(self.log.offset_for_timestamp(wanted))
        expected = next(
            (o for o in range(self.start, len(self.history)) if self.history[o][1] >= wanted), None
        )
        assert (found.offset if found is not None else None) == expected

    @rule(position=st.floats(0, 1))
    def delete_records(self, position: float) -> None:
        self.worker.run_all()
        offset = self.start + int(position * (len(self.history) - self.start))
        self.start = self.log.delete_records_before(offset)
        assert self.start == offset
        self.directory.tick(self.now_ms)
        self.worker.run_all()
        self.published_start = self.start

    def cut(self, end: int) -> None:
        del self.history[end:], self.epochs[end:]
        self.transactions = [each for each in self.transactions if each.first_offset < end]
        for transaction in self.transactions:
            transaction.offsets = [offset for offset in transaction.offsets if offset < end]
            if transaction.marker >= end:
                transaction.marker, transaction.aborted = -1, False

    # what time brings

    @rule(elapsed_ms=st.sampled_from([1, 30, 300, 1000]))
    def wait(self, elapsed_ms: int) -> None:
        self.now_ms += elapsed_ms
        self.directory.tick(self.now_ms)
        start = self.log.log_start_offset
        assert start >= self.start
        if start > self.start:  # retention: only what is old enough
            assert all(
                t < self.now_ms - self.config.retention_ms for _, t in self.history[self.start : start]
            )
        self.start = start

    @rule()
    def sync(self) -> None:
        flushed = self.log.flush()
        self.worker.run_all()
        flushed.result()
        assert self.log.recovery_point == self.log.log_end_offset

    @rule()
    def restart(self) -> None:
        self.directory.close()
        self.open(clean=True)
        self.forget_the_deleted()
        self.compare()

    @rule()
    def crash(self) -> None:
        kill(self.directory)
        self.open(clean=False)
        assert self.published_start <= self.log.log_start_offset <= self.start
        self.start = self.log.log_start_offset
        self.forget_the_deleted()
        self.compare()

    @rule(seed=st.integers(0, 2**32))
    def lose_power(self, seed: int) -> None:
        safe = self.log.recovery_point
        if self.config.flush_messages == 1:
            assert safe >= self.log.high_watermark
        kill(self.directory)
        self.lives += 1
        target = self.parent / str(self.lives)
        self.files.lose_power(target, random.Random(seed))
        shutil.rmtree(self.path)
        self.path = target
        self.open()
        assert safe <= self.log.log_end_offset <= len(self.history)
        assert self.log.log_start_offset <= self.start
        self.start = self.log.log_start_offset
        self.published_start = min(self.start, self.published_start)
        self.cut(self.log.log_end_offset)
        self.forget_the_deleted()
        self.compare()

    # what always holds

    def compare(self) -> None:
        self.worker.run_all()
        log = self.log
        assert log.log_start_offset == self.start
        assert log.log_end_offset == len(self.history)
        found = [(record.offset, (record.value or b"").decode()) for record in read_all(log, max_bytes=700)]
        expected = [(o, self.history[o][0]) for o in range(self.start, len(self.history))]
        assert found == [(offset, value) for offset, value in expected if value is not MARKER]
        for epoch in set(self.epochs[self.start :]):
            last = max(offset for offset, each in enumerate(self.epochs) if each == epoch)
            assert log.end_offset_for_epoch(epoch) == (epoch, last + 1)

    @invariant()
    def offsets_agree(self) -> None:
        if not hasattr(self, "log"):
            return
        log = self.log
        assert log.log_start_offset == self.start
        assert log.log_end_offset == len(self.history)
        assert log.log_start_offset <= log.last_stable_offset <= log.high_watermark <= log.log_end_offset


LogModel.TestCase.settings = storage_settings(150, 40)
TestLogModel = LogModel.TestCase
