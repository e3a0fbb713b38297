"""Transactions in logs that give offsets later, as those do that others append to as well."""

from __future__ import annotations

from typing import TypeVar

import pytest

from kbroker.operations.publishing import NewRecord
from kbroker.operations.transactions.open_transaction import OpenTransaction
from kbroker.pending import Pending
from kbroker.protocol.records import Record
from tests.handlers.conftest import Cluster, cluster, logs, on_late_logs_too, settings
from tests.transactions.broker_support import committed_values

__all__ = ["cluster", "logs", "settings"]

T = TypeVar("T")


def done(cluster: Cluster, answer: T | Pending[T]) -> T:
    for _ in range(10):
        cluster.deliver()
    return answer.result() if isinstance(answer, Pending) else answer


def begin(cluster: Cluster) -> OpenTransaction:
    return done(cluster, cluster.broker.publishing.transactions.begin(cluster.broker.own_resources, "id"))


def records(*values: str, partition: int = 0) -> list[tuple[str, NewRecord]]:
    return [("t", NewRecord(Record(-1, None, value.encode()), partition)) for value in values]


@on_late_logs_too
def test_calls_that_follow_each_other_get_their_offsets_and_commit(cluster: Cluster) -> None:
    cluster.create("t", 2)
    resources = cluster.broker.own_resources
    transaction = begin(cluster)
    first = transaction.publish(resources, records("a", "b"))
    second = transaction.publish(resources, records("c"))
    third = transaction.publish(resources, records("d", partition=1))
    ended = transaction.commit(resources)
    done(cluster, ended)
    assert [each.offset for each in (*first.result(), *second.result())] == [0, 1, 2]
    assert third.result()[0].offset == 0
    assert committed_values(cluster.broker.find_log("t", 0)) == [b"a", b"b", b"c"]
    assert committed_values(cluster.broker.find_log("t", 1)) == [b"d"]


@on_late_logs_too
def test_what_a_log_refuses_in_the_end_aborts_all_of_it(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster.create("t", 2)
    resources = cluster.broker.own_resources
    transaction = begin(cluster)
    done(cluster, transaction.publish(resources, records("a", partition=1)))
    done(cluster, transaction.publish(resources, records("b")))
    sequences = transaction._producer._sequences
    monkeypatch.setitem(sequences, next(iter(sequences)), 17)
    refused = transaction.publish(resources, records("c", partition=1) + records("d"))
    with pytest.raises(Exception, match="sequence"):
        done(cluster, refused)
    done(cluster, transaction.abort(resources))
    for partition in (0, 1):
        log = cluster.broker.find_log("t", partition)
        assert committed_values(log) == []
        assert log.last_stable_offset == log.high_watermark
