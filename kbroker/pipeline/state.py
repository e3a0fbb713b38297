"""The state directory of a job: checkpoints, progress, inferred schemas, and a lock.

    <state>/lock
    <state>/schemas/<source>.ddl
    <state>/<query>/checkpoint/    Spark's own
    <state>/<query>/progress.json  what status shows

A query is a sink, or the dead letters of a source (`<source>.dead_letter`). Spark writes `offsets/N` before
batch N and `commits/N` after it, so the newest batch with both tells what is in the table.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from kbroker.pipeline.errors import PipelineError


class Committed(NamedTuple):
    batch: int
    offsets: dict[str, dict[int, int]]
    """Topic, partition: the next offset to read."""


class Batch(NamedTuple):
    """What a batch of a query has read, and when a row was late for it."""

    number: int
    start: dict[str, dict[int, int]]
    """Without partitions that were new then."""
    end: dict[str, dict[int, int]]
    watermark_ms: int
    """Of the batch before: an operator drops rows that are not after it."""


class State:
    def __init__(self, location: str) -> None:
        self.location = location
        self.local = "://" not in location or location.startswith("file://")
        self.path = Path(location.removeprefix("file://"))

    def checkpoint(self, query: str) -> str:
        return f"{self.location.rstrip('/')}/{query}/checkpoint"

    def schema_file(self, source: str) -> Path:
        if not self.local:
            raise PipelineError("a schema can be inferred only where the state directory is local")
        return self.path / "schemas" / f"{source}.ddl"

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """One run or replay at a time; a lock that a killed process held is free again."""
        if not self.local:
            yield
            return
        self.path.mkdir(parents=True, exist_ok=True)
        with (self.path / "lock").open("a+") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                file.seek(0)
                raise PipelineError(
                    f"this pipeline is running already (process {file.read().strip() or '?'}): "
                    f"{self.path / 'lock'} is held"
                ) from None
            file.truncate(0)
            file.write(str(os.getpid()))
            file.flush()
            yield

    def committed(self, query: str) -> Committed | None:
        """What a query has written; None before its first batch."""
        checkpoint = self.path / query / "checkpoint"
        done = _batches(checkpoint / "commits")
        for batch in sorted(done & _batches(checkpoint / "offsets"), reverse=True):
            return Committed(batch, _offsets((checkpoint / "offsets" / str(batch)).read_text()))
        return None

    def batch(self, query: str, number: int) -> Batch | None:
        """None where Spark has removed it: it keeps the newest hundred, and some more."""
        checkpoint = self.path / query / "checkpoint"
        try:
            end = (checkpoint / "offsets" / str(number)).read_text()
            if number == 0:
                firsts = [each.read_text().partition("\n")[2] for each in checkpoint.glob("sources/*/0")]
                return Batch(number, slowest(map(parse_offsets, firsts)), _offsets(end), 0)
            before = (checkpoint / "offsets" / str(number - 1)).read_text()
        except OSError:
            return None
        watermark = json.loads(before.splitlines()[1])["batchWatermarkMs"]
        return Batch(number, _offsets(before), _offsets(end), int(watermark))

    def read_progress(self, query: str) -> dict[str, Any]:
        try:
            found = json.loads((self.path / query / "progress.json").read_text())
        except (OSError, ValueError):
            return {}
        return found if isinstance(found, dict) else {}

    def write_progress(self, query: str, progress: dict[str, Any]) -> None:
        if not self.local:
            return
        target = self.path / query / "progress.json"
        target.parent.mkdir(parents=True, exist_ok=True)
        part = target.with_name(".progress.json")
        part.write_text(json.dumps(progress))
        part.replace(target)


def parse_offsets(text: str | dict[str, Any] | None) -> dict[str, dict[int, int]]:
    """A Kafka source's offset as Spark prints it; nothing where it has none yet."""
    try:
        found = json.loads(text) if isinstance(text, str) else text
    except ValueError:
        return {}
    if not isinstance(found, dict):
        return {}
    return {
        topic: {int(partition): int(offset) for partition, offset in partitions.items()}
        for topic, partitions in found.items()
        if isinstance(partitions, dict)
    }


def slowest(read: Iterable[dict[str, dict[int, int]]]) -> dict[str, dict[int, int]]:
    """How far a query is: of a topic that it reads twice, as far as the slower reader."""
    found: dict[str, dict[int, int]] = {}
    for offsets in read:
        for topic, partitions in offsets.items():
            known = found.setdefault(topic, {})
            for partition, offset in partitions.items():
                known[partition] = min(offset, known.get(partition, offset))
    return found


def _offsets(text: str) -> dict[str, dict[int, int]]:
    """An `offsets/N` file: a version, metadata, then one line per source ("-": nothing yet)."""
    return slowest(parse_offsets(line) for line in text.splitlines()[2:] if line.startswith("{"))


def _batches(directory: Path) -> set[int]:
    try:
        return {int(entry.name) for entry in directory.iterdir() if entry.name.isdecimal()}
    except OSError:
        return set()
