"""Every single operation on the disk of a compaction fails in turn, and the log holds what it must."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest

from kbroker.storage.errors import StorageError
from kbroker.storage.partition.log import PartitionLog

from .compacting import Compacting, compacted
from .faults import Crash, FaultyFiles, QuickFiles

FAULTS = {
    "error": ("open", "write", "truncate", "sync", "rename", "unlink"),
    "full": ("open", "write", "rename"),
    "torn": ("write",),
    "crash": ("open", "write", "truncate", "sync", "rename", "unlink"),
}
VALUES = {"a": "3", "b": "1", "d": "2"} | {f"k{number}": "last" for number in range(6)}


def fill(topic: Compacting) -> None:
    transaction = {"producer_id": 7, "producer_epoch": 0, "transactional": True}
    topic.append(("a", "1"), ("b", "1"), ("c", "1"))
    topic.append(("a", "aborted"), base_sequence=0, **transaction)
    topic.mark(commit=False)
    topic.append(("c", None), ("d", "1"))
    for number in range(6):
        topic.append((f"k{number}", "first " + "x" * 50))
    topic.append(("a", "3"), ("d", "2"))
    for number in range(6):
        topic.append((f"k{number}", "last"))
    topic.roll()


def values(topic: Compacting) -> dict[str, str]:
    """What a reader makes of the log; of the aborted data only that it may still be there."""
    found: dict[str, str] = {}
    for _, key, value in topic.contents():
        assert key is not None
        if value is None:
            found.pop(key, None)
        elif value != "aborted":
            found[key] = value
    return found


def check(path: Path, end: int, config: object) -> None:
    """With a disk that works everything is there, now and after it was compacted."""
    topic = Compacting(path, config, files=QuickFiles())  # type: ignore[arg-type]
    assert values(topic) == VALUES
    assert topic.log.log_end_offset >= end
    topic.compact()
    topic.compact()
    assert values(topic) == VALUES
    names = {path.name for path in (path / "topic-0").iterdir()}
    assert not [name for name in names if name.endswith((".cleaned", ".swap"))]
    topic.restart()
    assert values(topic) == VALUES
    topic.directory.close()


def prepare(path: Path, files: FaultyFiles) -> Compacting:
    topic = Compacting(path, compacted(segment_bytes=400), files=files)
    fill(topic)
    return topic


@pytest.mark.parametrize("fault", FAULTS)
def test_whatever_operation_of_a_compaction_fails_the_latest_values_stay(
    memory_path: Path, quiet_log: None, fault: str
) -> None:
    files = FaultyFiles()
    topic = prepare(memory_path / "rehearsal", files)
    first = len(files.operations)
    end = topic.log.log_end_offset
    topic.compact()
    operations = files.operations[first:]
    assert topic.runs == 1
    assert any(operation.endswith(".log.swap") for operation in operations)
    topic.directory.close()
    for number, operation in enumerate(operations):
        if not operation.startswith(FAULTS[fault]):
            continue
        files = FaultyFiles(first + number, fault)
        path = memory_path / str(number)
        topic = prepare(path, files)
        assert len(files.operations) == first
        try:
            with contextlib.suppress(Crash):
                topic.compact()
                log = topic.log
                assert isinstance(log, PartitionLog)
                if not log.fenced:
                    # What failed is put off, and the log goes on.
                    assert values(topic) == VALUES
                    topic.append(("active", "y"))
                    topic.compact(5000)
                    assert values(topic) == VALUES
                    with contextlib.suppress(StorageError):
                        topic.directory.close()
            files.abandon()
            check(path, end, topic.config)
        except Exception as error:
            error.add_note(f"{fault} at operation {number}: {operation}")
            raise
