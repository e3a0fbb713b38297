"""Compaction of logs in files: the swap, leftovers, the checkpoint, the worker process, readers meanwhile."""

from __future__ import annotations

import errno
import logging
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from kbroker.pending import Pending
from kbroker.storage import names
from kbroker.storage.compaction.cleaner import group_segments
from kbroker.storage.compaction.jobs import CleaningJob, SegmentToClean
from kbroker.storage.compaction.offset_map import OffsetMap
from kbroker.storage.compaction.runner import InlineRunner, ProcessRunner
from kbroker.storage.directory import LogDirectory
from kbroker.storage.durability import checkpoints
from kbroker.storage.files import Files, WouldBlock
from kbroker.storage.partition.log import PartitionLog
from kbroker.storage.worker import InlineWorker

from .compacting import BACKOFF_MS, SETTINGS, Compacting, compacted
from .faults import FaultyFiles, QuickFiles
from .support import NOW, TOPIC_ID, ManualWorker, read


@pytest.fixture
def topic(tmp_path: Path) -> Iterator[Compacting]:
    opened = Compacting(tmp_path / "data", compacted())
    yield opened
    opened.directory.close()


def fill(topic: Compacting, rounds: int = 3) -> None:
    for round_ in range(rounds):
        for number in range(6):
            topic.append((f"k{number}", f"{round_} {'x' * 40}"))
    topic.roll()


def latest(rounds: int = 3) -> list[tuple[int, str, str]]:
    return [((rounds - 1) * 6 + n, f"k{n}", f"{rounds - 1} {'x' * 40}") for n in range(6)]


def directory_of(topic: Compacting) -> Path:
    assert topic.path is not None
    return topic.path / "topic-0"


def file_log(topic: Compacting) -> PartitionLog:
    assert isinstance(topic.log, PartitionLog)
    return topic.log


# the map


def test_the_map_remembers_the_latest_offset_of_every_key_up_to_its_capacity() -> None:
    offsets = OffsetMap(24 * 1000, 0.9)
    for number in range(offsets.capacity):
        offsets.put(b"%d" % number, number)
    assert offsets.size == offsets.capacity
    offsets.put(b"7", 10_000)
    assert offsets.get(b"7") == 10_000
    assert all(offsets.get(b"%d" % number) == number for number in range(8, offsets.capacity))
    assert offsets.get(b"unknown") == -1
    assert 850 < offsets.size <= 900


def test_the_smallest_map_holds_something() -> None:
    offsets = OffsetMap(0)
    offsets.put(b"a", 0)
    assert offsets.get(b"a") == 0
    assert OffsetMap(1 << 27, records=10).capacity < 100


# grouping


def grouped(segments: list[SegmentToClean], end: int, **changes: Any) -> list[list[int]]:
    job = CleaningJob(
        directory="",
        segments=segments,
        first_dirty_offset=0,
        first_uncleanable_offset=end,
        aborted=[],
        producers=[],
        now_ms=0,
        delete_retention_ms=0,
        segment_bytes=1000,
        segment_index_bytes=100,
        index_interval_bytes=4096,
        dedupe_buffer_bytes=1 << 20,
        dedupe_load_factor=0.9,
    )
    groups = group_segments(replace(job, **changes), segments)
    return [[segment.base_offset for segment in group] for group in groups]


def test_segments_are_merged_up_to_the_sizes_of_data_and_indexes() -> None:
    segments = [SegmentToClean(base, 400, 8, 12) for base in range(0, 50, 10)]
    assert grouped(segments, 50) == [[0, 10], [20, 30], [40]]
    assert grouped(segments, 50, segment_bytes=10_000, segment_index_bytes=24) == [[0, 10], [20, 30], [40]]
    assert grouped(segments, 50, segment_bytes=10_000) == [[0, 10, 20, 30, 40]]


def test_a_merged_segment_has_no_relative_offset_beyond_an_int32() -> None:
    far = 2**31
    segments = [SegmentToClean(base, 10, 0, 0) for base in (0, 10, far)]
    assert grouped(segments, far + 5) == [[0, 10], [far]]
    empty = [SegmentToClean(0, 10, 0, 0), SegmentToClean(far, 0, 0, 0)]
    assert grouped(empty, far + 5) == [[0, far]]


# files


def test_only_files_of_segments_are_left_and_a_restart_finds_the_same(topic: Compacting) -> None:
    fill(topic)
    topic.compact()
    assert topic.contents() == latest()
    topic.directory.tick(topic.now_ms + 10)
    assert {path.suffix for path in directory_of(topic).iterdir()} <= {
        ".log",
        ".index",
        ".timeindex",
        ".txnindex",
        ".snapshot",
        ".metadata",
        "",
    }
    for reopen in (topic.restart, topic.crash):
        reopen()
        assert topic.contents() == latest()
        assert topic.log.log_start_offset == 0


def test_the_cleaner_offset_checkpoint_is_kafkas_and_is_used_after_a_restart(topic: Compacting) -> None:
    fill(topic)
    topic.compact()
    active = topic.segments()[-1]
    path = str(topic.path)
    assert checkpoints.read(Files(), path, names.CLEANER_OFFSETS) == {("topic", 0): active}
    topic.restart()
    topic.compact()
    assert topic.runs == 0
    topic.directory.delete_partition("topic", 0, TOPIC_ID)
    topic.directory.close()
    assert checkpoints.read(Files(), path, names.CLEANER_OFFSETS) == {}
    topic.open()


def test_a_partition_that_nobody_opened_since_the_start_is_compacted(topic: Compacting) -> None:
    fill(topic)
    topic.directory.close()
    topic.directory = LogDirectory.open(
        str(topic.path),
        worker=InlineWorker(),
        now_ms=topic.now_ms,
        files=QuickFiles(),
        settings=SETTINGS,
        runner=InlineRunner(QuickFiles()),
    )
    topic.directory.tick(topic.now_ms + BACKOFF_MS)
    assert topic.runs == 0, "without a config it is left alone"
    topic.directory.config_source = lambda _: topic.config
    topic.compact(4_000_000)  # also what was looked at in vain is looked at again
    assert topic.runs == 1
    topic.log = topic.directory.log(TOPIC_ID, "topic", 0, topic.config, 3)
    assert topic.log.leader_epoch == 3
    assert topic.contents() == latest()


def test_the_dirtiest_log_is_first_and_one_beyond_its_lag_before_it(topic: Compacting) -> None:
    order: list[str] = []

    class Watching(InlineRunner):
        def start(self, job: CleaningJob) -> None:
            order.append(os.path.basename(job.directory))
            super().start(job)

    topic.directory.close()
    topic.runner = Watching(QuickFiles())
    topic.open()
    for name, clean, dirty in (("half", 6, 6), ("dirty", 1, 12), ("overdue", 12, 1)):
        log = topic.directory.log(TOPIC_ID, name, 0, topic.config, 0)
        topic.log = log
        for number in range(clean):
            topic.append((f"k{number}", "x" * 40))
        topic.roll()
        topic.compact()
        for number in range(dirty):
            topic.append((f"k{number}", "y" * 40))
        topic.roll()
        log.config = compacted(min_cleanable_dirty_ratio=1.0)
    order.clear()
    topic.now_ms += 100_000
    for name in ("half", "dirty", "overdue"):
        lag = {"max_compaction_lag_ms": 50_000} if name == "overdue" else {}
        topic.directory.log(TOPIC_ID, name, 0, compacted(**lag), 0)
    topic.compact()
    assert order == ["overdue-0", "dirty-0", "half-0"]


@pytest.mark.parametrize("damage", ["missing", "unreadable"])
def test_a_compacted_log_is_whole_though_the_recovery_point_is_lost(topic: Compacting, damage: str) -> None:
    fill(topic)
    topic.compact()
    topic.directory.close()
    assert topic.path is not None
    (topic.path / names.CLEAN_SHUTDOWN).unlink()
    if damage == "missing":
        (topic.path / names.RECOVERY_POINTS).unlink()
    else:
        (topic.path / names.RECOVERY_POINTS).write_text("nonsense")
    topic.open()
    assert topic.contents() == latest()


# leftovers of a crash


def leave(path: Path, name: str, data: bytes = b"") -> None:
    (path / name).write_bytes(data)


def test_cleaned_files_are_removed_at_the_start(topic: Compacting) -> None:
    fill(topic)
    before = topic.contents()
    topic.directory.close()
    leave(directory_of(topic), "00000000000000000000.log.cleaned", b"half")
    leave(directory_of(topic), "00000000000000000000.index.swap", b"wrong")
    topic.open()
    assert topic.contents() == before
    assert not list(directory_of(topic).glob("*.cleaned")) + list(directory_of(topic).glob("*.swap"))


def test_a_begun_swap_is_completed_though_the_next_segment_was_being_cleaned(topic: Compacting) -> None:
    """The old segments may be gone already: their successor must not go with unfinished files behind it."""
    topic.append(("a", "1"), ("a", "2"))
    topic.roll()
    topic.directory.close()
    path = directory_of(topic)
    for kind in names.SEGMENT_SUFFIXES:
        source = path / f"{0:020d}{kind}"
        if source.exists():
            source.rename(path / f"{0:020d}{kind}.swap")
    leave(path, f"{2:020d}.log.cleaned", b"half")
    topic.open()
    assert topic.contents() == [(0, "a", "1"), (1, "a", "2")]
    assert not list(path.glob("*.swap"))


# what else happens meanwhile


class StepRunner(InlineRunner):
    """Works only when the test lets it."""

    def __init__(self, files: Files) -> None:
        super().__init__(files)
        self.allowed = 0

    def next_event(self) -> Any:
        if not self.allowed:
            return None
        self.allowed -= 1
        return super().next_event()


@pytest.fixture
def stepped(tmp_path: Path) -> Iterator[tuple[Compacting, StepRunner]]:
    files = QuickFiles()
    runner = StepRunner(files)
    topic = Compacting(tmp_path / "data", compacted(), files=files, runner=runner)
    yield topic, runner
    topic.directory.close()


def begin(topic: Compacting) -> None:
    topic.now_ms += BACKOFF_MS
    topic.directory.tick(topic.now_ms)


def test_appends_and_reads_go_on_while_a_log_is_compacted(stepped: tuple[Compacting, StepRunner]) -> None:
    topic, runner = stepped
    fill(topic)
    begin(topic)
    steps = 0
    while topic.runs == 0:
        runner.allowed = 1
        topic.directory.tick(topic.now_ms)
        steps += 1
        topic.append((f"new {steps}", "y" * 60))
        keys = {key: value for _, key, value in topic.contents()}
        assert {f"k{n}": f"2 {'x' * 40}" for n in range(6)}.items() <= keys.items()
        assert len([key for key in keys if key and key.startswith("new")]) == steps
    assert steps > 2
    assert topic.contents()[:6] == latest()


def test_a_reader_with_an_old_buffer_or_descriptor_finishes(stepped: tuple[Compacting, StepRunner]) -> None:
    topic, runner = stepped
    fill(topic)
    before = b"".join(bytes(buffer) for buffer in read(topic.log, 0).buffers)
    held = read(topic.log, 0)
    handle = file_log(topic).segments[0].handle
    runner.allowed = 100
    topic.compact()
    topic.directory.tick(topic.now_ms + 1000)
    assert b"".join(bytes(buffer) for buffer in held.buffers) == before
    assert Files().read_at(handle, len(before), 0) == before


def test_a_cold_read_that_began_before_the_swap_is_answered(tmp_path: Path) -> None:
    class ColdFiles(QuickFiles):
        cold = False

        def read_cached(self, file: Any, size: int, position: int) -> Any:
            if self.cold:
                self.cold = False
                raise WouldBlock(file, size, position)
            return super().read_at(file, size, position)

    files = ColdFiles()
    topic = Compacting(tmp_path / "data", compacted(), files=files)
    fill(topic)
    worker = ManualWorker()
    file_log(topic)._context.worker = worker
    files.cold = True
    pending = topic.log.read(0, 1 << 20)
    assert isinstance(pending, Pending)
    topic.compact()
    worker.run_all()
    found = pending.result()
    assert found.next_offset > 0
    assert topic.contents() == latest()
    topic.directory.close()


@pytest.mark.parametrize("change", ["delete partition", "retention", "close", "fence"])
def test_a_compaction_that_something_else_overtakes_is_given_up(
    stepped: tuple[Compacting, StepRunner], change: str, caplog: pytest.LogCaptureFixture
) -> None:
    topic, runner = stepped
    fill(topic)
    begin(topic)
    runner.allowed = 1
    topic.directory.tick(topic.now_ms)
    segments = topic.segments()
    if change == "delete partition":
        topic.directory.delete_partition("topic", 0, TOPIC_ID)
    elif change == "retention":
        topic.log.delete_records_before(segments[3])
        file_log(topic).apply_retention(topic.now_ms)
    elif change == "close":
        topic.restart()
    else:
        file_log(topic).sync_failed(OSError(errno.EIO, "broken"))
    runner.allowed = 100
    with caplog.at_level(logging.INFO):
        topic.directory.tick(topic.now_ms)
    if change != "close":
        assert topic.runs == 0
    assert not list(topic.path.glob("*/*.cleaned"))  # type: ignore[union-attr]
    if change in ("retention", "close"):
        topic.compact()
        assert [value for _, key, value in topic.contents() if key == "k5"] == [f"2 {'x' * 40}"]


def test_a_worker_that_fails_is_tried_again_after_the_backoff(
    stepped: tuple[Compacting, StepRunner], caplog: pytest.LogCaptureFixture
) -> None:
    topic, runner = stepped
    fill(topic)
    first = directory_of(topic) / f"{0:020d}.log"
    hidden = first.with_suffix(".hidden")
    first.rename(hidden)
    runner.allowed = 100
    begin(topic)
    assert topic.runs == 0
    assert "not compacted" in caplog.text
    hidden.rename(first)
    topic.directory.tick(topic.now_ms + BACKOFF_MS - 1)
    assert topic.runs == 0
    topic.compact(2 * BACKOFF_MS)
    assert topic.contents() == latest()


def test_a_damaged_log_is_left_alone_and_said_to_be(
    stepped: tuple[Compacting, StepRunner], caplog: pytest.LogCaptureFixture
) -> None:
    topic, runner = stepped
    fill(topic)
    first = directory_of(topic) / f"{0:020d}.log"
    data = bytearray(first.read_bytes())
    data[70] ^= 0xFF
    first.write_bytes(data)
    runner.allowed = 1000
    begin(topic)
    topic.compact(BACKOFF_MS)
    topic.compact(BACKOFF_MS)
    assert topic.runs == 0
    assert caplog.text.count("is not compacted any more") == 1
    assert len(topic.segments()) > 5


def test_a_full_disk_only_puts_compaction_off(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    class FullDisk(QuickFiles):
        full = True

        def write_at(self, file: Any, data: Any, position: int) -> int:
            if self.full:
                raise OSError(errno.ENOSPC, "no space left on device")
            return super().write_at(file, data, position)

    writing = FullDisk()
    topic = Compacting(tmp_path / "data", compacted(), runner=InlineRunner(writing))
    fill(topic)
    begin(topic)
    assert topic.runs == 0
    assert "no space left" in caplog.text
    topic.append(("k0", "still writable"))
    writing.full = False
    topic.compact(BACKOFF_MS)
    assert topic.contents()[:5] == latest()[:5] or topic.contents()[:6] == latest()
    topic.directory.close()


def test_nothing_is_swapped_before_the_recovery_point_covers_it(tmp_path: Path) -> None:
    """After a crash gaps are only trusted below the recovery point."""
    files = FaultyFiles()
    topic = Compacting(tmp_path / "data", compacted(), files=files)
    fill(topic)
    bound = topic.segments()[-1]
    published: list[int] = []
    rename = files.rename

    def watched(source: str, target: str) -> None:
        if target.endswith(names.SWAP):
            points = checkpoints.read(Files(), str(topic.path), names.RECOVERY_POINTS)
            published.append(points["topic", 0])
        rename(source, target)

    files.rename = watched  # type: ignore[method-assign]
    topic.compact()
    assert published
    assert min(published) >= bound
    topic.directory.close()


def test_with_fsync_reads_end_at_the_high_watermark_after_a_swap(tmp_path: Path) -> None:
    topic = Compacting(tmp_path / "data", compacted(flush_messages=1))
    fill(topic)
    log = file_log(topic)
    log.checkpoint_requested = True
    log._context.flusher.request(log)
    worker = ManualWorker()
    log._context.flusher._worker = worker  # from now on nothing gets on disk
    topic.append(("unsynced", "x"))
    high_watermark = topic.log.high_watermark
    assert topic.log.log_end_offset > high_watermark
    topic.compact()
    assert topic.runs == 1
    assert max(offset for offset, _, _ in topic.contents()) < high_watermark
    worker.run_all()
    assert topic.contents()[-1][1] == "unsynced"
    topic.directory.close()


# the worker process


def wait_for(condition: Callable[[], bool], seconds: float = 30) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "this takes too long"
        time.sleep(0.01)


def gone(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    with open(f"/proc/{pid}/stat", encoding="ascii") as status:
        return status.read().rsplit(")", 1)[1].split()[0] == "Z"


def test_a_process_of_low_priority_compacts_and_ends_when_nothing_is_left(tmp_path: Path) -> None:
    runner = ProcessRunner()
    topic = Compacting(tmp_path / "data", compacted(), runner=runner)
    fill(topic)
    begin(topic)
    pid = runner.pid
    assert pid is not None

    def finished() -> bool:
        topic.directory.tick(topic.now_ms)
        return topic.runs == 1

    wait_for(lambda: os.getpriority(os.PRIO_PROCESS, pid) == 10 or topic.runs == 1)
    wait_for(finished)
    assert topic.contents() == latest()
    begin(topic)
    assert runner.pid is None
    wait_for(lambda: gone(pid))
    topic.directory.close()


def test_the_process_ends_with_the_broker(tmp_path: Path) -> None:
    runner = ProcessRunner()
    topic = Compacting(tmp_path / "data", compacted(), runner=runner)
    fill(topic)
    begin(topic)
    pid, process = runner.pid, runner._process
    assert pid is not None
    assert process is not None
    assert process.stdin is not None
    process.stdin.close()  # as the end of the broker would
    assert process.wait(30) == 0
    topic.directory.close()


def test_a_process_that_is_killed_is_replaced(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    runner = ProcessRunner()
    topic = Compacting(tmp_path / "data", compacted(), runner=runner)
    fill(topic)
    begin(topic)
    assert runner._process is not None
    runner._process.kill()

    def failed() -> bool:
        topic.directory.tick(topic.now_ms)
        return "the worker process ended" in caplog.text

    wait_for(failed)
    topic.now_ms += BACKOFF_MS

    def finished() -> bool:
        topic.directory.tick(topic.now_ms)
        return topic.runs == 1

    wait_for(finished)
    assert topic.contents() == latest()
    topic.directory.close()


def test_a_job_larger_than_a_pipe_holds_is_sent_without_waiting(tmp_path: Path) -> None:
    runner = ProcessRunner()
    topic = Compacting(tmp_path / "data", compacted(segment_bytes=3000), runner=runner)
    for producer_id in range(5000):
        topic.append(("k", "v"), producer_id=producer_id, producer_epoch=0, base_sequence=0)
    topic.roll()
    begin(topic)

    def finished() -> bool:
        topic.directory.tick(topic.now_ms)
        return topic.runs == 1

    wait_for(finished)
    assert [value for _, key, value in topic.contents()] == ["v"]
    assert topic.now_ms >= NOW
    topic.directory.close()
