"""Batches that came together are stored by one write, or else nothing has happened."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kbroker.storage.interface import Log

from .faults import FaultyFiles
from .support import NOW, Storage, batch, contents, idempotent
from .test_durability import CountingFiles


def run(*sequences: int, **fields: Any) -> list[memoryview]:
    return [idempotent(sequence, f"value {sequence}", **fields) for sequence in sequences]


def test_five_batches_are_one_write(tmp_path: Path) -> None:
    files = FaultyFiles()
    storage = Storage(tmp_path / "data", files=files)
    log = storage.log()
    log.append_as_leader(idempotent(0), NOW)
    done = len(files.operations)
    assert log.append_run(run(1, 2, 3, 4, 5), NOW) == [1, 2, 3, 4, 5]
    assert files.operations[done:] == ["write "]
    assert contents(log)[1:] == [(number, f"value {number}") for number in range(1, 6)]
    (known,) = log.producers()
    assert known.last_sequence == 5
    storage.directory.close()


def test_files_are_the_same_as_of_batches_one_by_one(tmp_path: Path) -> None:
    left = []
    for name in ("together", "one by one"):
        storage = Storage(tmp_path / name)
        log = storage.log(index_interval_bytes=300, segment_bytes=3000)
        for start in range(0, 60, 4):
            made = [
                batch("x" * (number % 7 * 30), timestamp=NOW + number % 5)
                for number in range(start, start + 4)
            ]
            if name != "together" or log.append_run(made, NOW) is None:
                for each in made:
                    log.append_as_leader(each, NOW)
        storage.directory.close()
        path = next((tmp_path / name).glob("topic-0"))
        left.append({file.name: file.read_bytes() for file in path.iterdir() if "metadata" not in file.name})
    assert left[0] == left[1]
    assert sum(name.endswith(".log") for name in left[0]) > 2


@pytest.mark.parametrize(
    "made",
    [
        lambda: run(1, 2, 4),
        lambda: run(0, 1, 2),
        lambda: run(1, 2, 2),
        lambda: run(2, 3),
        lambda: [*run(1), *run(2, epoch=1)],
        lambda: [*run(1), *run(0, producer_id=8)],
        lambda: [*run(1), batch("without a producer")],
        lambda: [*run(1, transactional=True), *run(2)],
        lambda: [*run(1), memoryview(bytearray(50))],
        lambda: [*run(1), memoryview(bytearray(run(2)[0].tobytes() + b"more"))],
        lambda: [*run(1), idempotent(2, "x" * 2000)],
        lambda: [*run(1), idempotent(2, timestamp=NOW + 7_200_000)],
    ],
)
def test_an_unusual_batch_leaves_everything_to_one_by_one(
    storage: Storage, made: Callable[[], list[memoryview]]
) -> None:
    log = storage.log(max_message_bytes=1500)
    log.append_as_leader(idempotent(0), NOW)
    before = state(log)
    batches = made()
    assert log.append_run(batches, NOW) is None
    assert state(log) == before
    assert batches == made()


@pytest.mark.parametrize(
    "configs",
    [
        {"flush_messages": 1},
        {"flush_messages": 1000},
        {"message_timestamp_type": "LogAppendTime"},
        {"cleanup_policy": frozenset(["compact"])},
        {"compression_type": "lz4"},
        {"segment_bytes": 300},
        {"segment_ms": 1},
        {"segment_index_bytes": 24, "index_interval_bytes": 1},
    ],
)
def test_a_log_that_does_more_takes_them_one_by_one(tmp_path: Path, configs: dict[str, Any]) -> None:
    storage = Storage(tmp_path / "data")
    log = storage.log(**configs)
    log.append_as_leader(idempotent(0), NOW)
    assert log.append_run([*run(1, timestamp=NOW + 10), *run(2, 3)], NOW) is None
    assert log.log_end_offset == 1
    storage.directory.close()


def test_the_first_batch_of_a_segment_comes_alone(storage: Storage) -> None:
    log = storage.log()
    assert log.append_run(run(0, 1), NOW) is None
    assert log.log_end_offset == 0


def test_what_does_not_fit_on_the_disk_is_cut_off_and_tried_one_by_one(tmp_path: Path) -> None:
    files = CountingFiles()
    storage = Storage(tmp_path / "data", files=files)
    log = storage.log()
    log.append_as_leader(idempotent(0), NOW)
    made = run(1, 2, 3)
    files.room = len(made[0]) + 10
    assert log.append_run(made, NOW) is None
    assert made == run(1, 2, 3)
    files.room = None
    segment = next((tmp_path / "data" / "topic-0").glob("*.log"))
    assert segment.stat().st_size == log.size_bytes
    assert log.append_run(made, NOW) == [1, 2, 3]
    assert len(contents(log)) == 4
    storage.directory.close()


def test_a_write_that_comes_back_short_is_finished(tmp_path: Path) -> None:
    class Short(CountingFiles):
        def write_many_at(self, file: Any, parts: Any, position: int) -> int:
            return self.write_at(file, b"".join(parts)[:100], position)

    storage = Storage(tmp_path / "data", files=Short())
    log = storage.log()
    log.append_as_leader(idempotent(0), NOW)
    assert log.append_run(run(1, 2, 3), NOW) == [1, 2, 3]
    assert contents(log)[1:] == [(number, f"value {number}") for number in range(1, 4)]
    storage.directory.close()


def test_who_watches_is_told(storage: Storage) -> None:
    log = storage.log()
    log.append_as_leader(idempotent(0), NOW)
    told: list[int] = []
    log.watch(lambda: told.append(log.high_watermark))
    log.append_run(run(1, 2), NOW)
    assert told == [3]


def state(log: Log) -> tuple[Any, ...]:
    return log.log_end_offset, log.high_watermark, log.size_bytes, log.producers(), contents(log)
