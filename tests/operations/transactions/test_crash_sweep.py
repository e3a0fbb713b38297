"""Consume, transform, publish, exactly once: the broker dies at every step, and nothing is lost or doubled.

A processor copies an input to two partitions of an output, one record per transaction, with the group's
offset in it. When the broker dies it goes on as a processor does: it asks what became of its last commit, and
begins where the group is.
"""

from __future__ import annotations

from pathlib import Path
from typing import TypeVar

import pytest

from kbroker.catalog.sqlite.database import Database
from kbroker.operations.group_offsets import CommittedOffset, NewOffset, TopicPartition, committed_offsets
from kbroker.operations.publishing import NewRecord
from kbroker.operations.transactions.errors import OnlyAbort, TransactionOver
from kbroker.pending import Pending
from kbroker.protocol.errors import ErrorCode
from kbroker.protocol.records import Record
from tests.storage.faults import Crash, QuickFiles
from tests.transactions.broker_support import committed_values
from tests.transactions.mortal_broker import FileCluster, deaths, die, mortal_parts

T = TypeVar("T")

INPUTS = 2


def now(answer: T | Pending[T]) -> T:
    return answer.result() if isinstance(answer, Pending) else answer


class Processor:
    """``transactional_id``: None for one that the broker makes up."""

    def __init__(self, transactional_id: str | None) -> None:
        self.transactional_id = transactional_id
        self.last = ""
        """The id of the transaction that was committed last, or was about to be."""
        self.committing = False
        self.answered = False

    def run(self, cluster: FileCluster) -> None:
        resources = cluster.broker.own_resources
        while (position := group_offset(cluster)) < INPUTS:
            begun = cluster.broker.publishing.transactions.begin(resources, self.transactional_id)
            transaction = now(begun)
            self.last, self.committing, self.answered = str(transaction.id), False, False
            copy = Record(-1, None, b"%d" % position)
            records = [("output", NewRecord(copy, partition)) for partition in (0, 1)]
            now(transaction.publish(resources, records))
            now(transaction.add_offsets(resources, "group", [NewOffset("input", 0, position + 1)]))
            self.committing = True
            now(transaction.commit(resources))
            self.answered = True

    def ask(self, cluster: FileCluster) -> bool | None:
        """After a death: whether the last commit was done; None: a newer transaction hides that."""
        transactions, resources = cluster.broker.publishing.transactions, cluster.broker.own_resources
        try:
            now(transactions.commit(resources, self.last))
        except OnlyAbort:
            now(transactions.abort(resources, self.last))
            return False
        except TransactionOver as error:
            return None if error.code is ErrorCode.PRODUCER_FENCED else False
        return True


def group_offset(cluster: FileCluster) -> int:
    at = TopicPartition("input", 0)
    fetched = committed_offsets(cluster.broker.own_resources, "group", [at], require_stable=True)
    found = now(fetched)[at]
    assert not isinstance(found, Exception), found
    return found.offset if isinstance(found, CommittedOffset) else 0


def fill(cluster: FileCluster) -> None:
    cluster.create("input")
    cluster.create("output", 2)
    cluster.produce("input", *range(INPUTS))


def check(path: Path, processor: Processor) -> None:
    """Start again where it died, go on, and look."""
    cluster = FileCluster(path, QuickFiles(), Database(path / "catalog.sqlite"))
    if processor.last:
        was_committed = processor.ask(cluster)
        assert was_committed is not False if processor.answered else was_committed is not None
        assert processor.committing or not was_committed
        shown = len(committed_values(cluster.broker.find_log("output", 0)))
        assert shown == group_offset(cluster)
    processor.run(cluster)
    for partition in (0, 1):
        log = cluster.broker.find_log("output", partition)
        assert committed_values(log) == [b"%d" % number for number in range(INPUTS)]
        assert log.last_stable_offset == log.high_watermark
    assert group_offset(cluster) == INPUTS
    cluster.logs.close()
    cluster.catalog.close()


@pytest.mark.parametrize("transactional_id", ["processor", None], ids=["own id", "made up"])
def test_a_death_at_any_step_loses_nothing_and_doubles_nothing(
    tmp_path: Path, transactional_id: str | None
) -> None:
    path = tmp_path / "counted"
    files, database = mortal_parts(path)
    cluster = FileCluster(path, files, database)
    fill(cluster)
    steps_of_setup = len(files.operations), database.writes
    processor = Processor(transactional_id)
    processor.run(cluster)
    cluster.broker.close()
    die(files, database)
    check(path, processor)
    for death in deaths(files, database, steps_of_setup):
        path = tmp_path / str(death)
        dying = Processor(transactional_id)
        files, database = mortal_parts(path, death)
        with pytest.raises(Crash):
            live(FileCluster(path, files, database), dying)
        die(files, database)
        check(path, dying)


def live(cluster: FileCluster, processor: Processor) -> None:
    fill(cluster)
    processor.run(cluster)
    cluster.broker.close()
