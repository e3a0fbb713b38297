"""kill -9 of a process that acknowledges records: what it was told is stored is there."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from kbroker.catalog.sqlite.catalog import SqliteCatalog
from kbroker.catalog.sqlite.inspection import inspect, journal_problems
from tests.catalog.manual_timers import ManualTimers
from tests.catalog.share_writer import KEYS


def test_what_was_acknowledged_outlives_every_kill(tmp_path: Path) -> None:
    for lines in (1, 60, 7, 400, 1000):  # until when it may go on
        told = acknowledge(tmp_path, lines)
        assert journal_problems(tmp_path) == []
        assert inspect(tmp_path).problem is None
        catalog = SqliteCatalog.open(tmp_path)
        assert catalog.snapshot().shares_stored
        store = catalog.share_state_store(ManualTimers())
        states = store.load()
        assert set(states) == set(KEYS)
        for partition, offset in told.items():
            state = states[KEYS[partition]]
            assert state.start_offset >= offset, "one more may have been stored than told"
            assert all(run.first_offset == state.start_offset + 1 for run in state.runs)
        store.close()
        catalog.close()


def acknowledge(directory: Path, lines: int) -> dict[int, int]:
    """Let it go on for so many lines, and kill it. The last offset by partition that it told."""
    command = [sys.executable, "-m", "tests.catalog.share_writer", str(directory)]
    told: dict[int, int] = {}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as writer:
        assert writer.stdout is not None
        for _ in range(lines):
            partition, offset = map(int, writer.stdout.readline().split())
            told[partition] = offset
        writer.kill()
        for line in writer.stdout.readlines():
            if line.endswith("\n"):
                partition, offset = map(int, line.split())
                told[partition] = offset
    return told
