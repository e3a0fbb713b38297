"""The broker dies at every step that transactions leave on the disk: each is there wholly or not at all.

Real files, a real catalog. One run counts the steps (operations on the files of the logs and of the catalog's
journals, commits of the catalog); then there is a run that dies before each of them, one that dies in the
middle of each write, and one that dies after each commit, and what a restart makes of it is looked at.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from kbroker.catalog.sqlite.database import Database
from tests.storage.faults import Crash, QuickFiles

from .broker_support import TransactionalClient, committed_values, fetched_offset
from .mortal_broker import CountingFiles, FileCluster, MortalDatabase, deaths, die, mortal_parts

GROUP = "group"


class Run:
    """Two transactions over two partitions and a group; `answered` holds how the ends were answered."""

    def __init__(self, path: Path, files: CountingFiles, database: MortalDatabase, version: int) -> None:
        self.path = path
        self.files = files
        self.database = database
        self.version = version
        self.answered: list[int] = []
        self.steps_of_setup = (0, 0, 0)

    def live(self) -> None:
        cluster = FileCluster(self.path, self.files, self.database)
        cluster.create("topic", 2)
        client = TransactionalClient(cluster)
        client.init()
        self.steps_of_setup = (len(self.files.operations), self.database.writes, self.files.entries)
        produce_version, end_version = (12, 5) if self.version == 2 else (11, 4)
        for number, commit in enumerate((True, False, True)):
            if self.version != 2:
                client.add("topic", 0, 1)
                client.add_offsets(GROUP)
            for partition in (0, 1):
                value = b"transaction %d" % number
                client.produce("topic", value, value, partition=partition, version=produce_version)
            client.commit_offset(GROUP, "topic", number, version=5 if self.version == 2 else 4)
            self.answered.append(client.end(commit=commit, version=end_version).error_code)
        cluster.broker.close()


def whole_transactions(cluster: FileCluster) -> list[int]:
    """The transactions that show in both partitions, wholly."""
    seen = [committed_values(cluster.broker.find_log("topic", partition)) for partition in (0, 1)]
    assert seen[0] == seen[1], "a transaction shows in one partition only"
    assert seen[0][::2] == seen[0][1::2], "half of a transaction shows"
    return [int(value.split()[1]) for value in seen[0][::2]]


def check(run: Run) -> None:
    """Start again where it died, and look."""
    cluster = FileCluster(run.path, QuickFiles(), Database(run.path / "catalog.sqlite"))
    if cluster.broker.topics.get("topic") is None:
        return
    shown = whole_transactions(cluster)
    assert run.answered == [0] * len(run.answered)
    # 1 is aborted. What was answered shows; what was not may, as a whole.
    answered = [number for number in range(len(run.answered)) if number != 1]
    assert shown[: len(answered)] == answered
    assert shown in ([], [0], [0, 2])
    last = shown[-1] if shown else -1
    code, offset = fetched_offset(cluster, GROUP, "topic", require_stable=False)
    assert (code, offset) == (0, last)
    # Whatever is still open can be ended, and then nothing hangs.
    if any(
        each.transactional_id == "id" for each in cluster.broker.transactions.list_transactions((), (), -1, 0)
    ):
        TransactionalClient(cluster).init()
    for partition in (0, 1):
        log = cluster.broker.find_log("topic", partition)
        assert log.last_stable_offset == log.high_watermark
        assert all(state.current_txn_start_offset < 0 for state in log.producers())
    assert whole_transactions(cluster) == shown
    cluster.logs.close()
    cluster.catalog.close()


@pytest.mark.parametrize("version", [1, 2])
def test_a_crash_at_any_step_leaves_whole_transactions(tmp_path: Path, version: int) -> None:
    path = tmp_path / "counted"
    counted = Run(path, *mortal_parts(path), version)
    counted.live()
    die(counted.files, counted.database)
    check(counted)
    first_operation, first_write, first_entry = counted.steps_of_setup
    # Each transaction begins and is decided, the last is complete.
    assert counted.files.entries - first_entry >= 7
    for death in deaths(counted.files, counted.database, (first_operation, first_write)):
        path = tmp_path / str(death)
        run = Run(path, *mortal_parts(path, death), version)
        with pytest.raises(Crash):
            run.live()
        die(run.files, run.database)
        check(run)
