"""Transactions below all doors, and what readers make of them."""

from __future__ import annotations

from collections.abc import Sequence

from kbroker.operations.group_offsets import CommittedOffset, TopicPartition, committed_offsets
from kbroker.operations.publishing import NewRecord, Published
from kbroker.operations.reading import ReadFrom
from kbroker.operations.records import read_records
from kbroker.operations.transactions.open_transaction import OpenTransaction
from kbroker.operations.transactions.registry import OpenTransactions
from kbroker.protocol.records import Record
from kbroker.requests.resources import Resources
from tests.support.timed_cluster import TimedCluster


def registry(cluster: TimedCluster) -> OpenTransactions:
    return cluster.broker.publishing.transactions


def begin(
    cluster: TimedCluster,
    transactional_id: str | None = None,
    *,
    timeout_ms: int | None = None,
    resources: Resources | None = None,
) -> OpenTransaction:
    asker = resources or cluster.resources()
    return cluster.result(registry(cluster).begin(asker, transactional_id, timeout_ms=timeout_ms))


def addressed(topic: str, *values: str, partition: int | None = 0) -> list[tuple[str, NewRecord]]:
    return [(topic, NewRecord(Record(-1, None, value.encode()), partition)) for value in values]


def publish(
    cluster: TimedCluster, transaction: OpenTransaction, topic: str, *values: str, partition: int | None = 0
) -> list[Published]:
    records = addressed(topic, *values, partition=partition)
    return cluster.result(transaction.publish(cluster.resources(), records))


def commit(cluster: TimedCluster, transaction: OpenTransaction) -> None:
    cluster.result(registry(cluster).commit(cluster.resources(), str(transaction.id)))


def abort(cluster: TimedCluster, transaction: OpenTransaction) -> None:
    cluster.result(registry(cluster).abort(cluster.resources(), str(transaction.id)))


def state(cluster: TimedCluster, transaction: OpenTransaction) -> str:
    return registry(cluster).describe(cluster.resources(), str(transaction.id)).state


def committed(cluster: TimedCluster, topic: str, partition: int = 0) -> list[str]:
    """What a reader of committed records finds."""
    wanted = ReadFrom(topic, partition, 0, 1 << 20)
    found = cluster.result(read_records(cluster.resources(), wanted, committed=True))
    return [(record.value or b"").decode() for record in found.records]


def is_stable(cluster: TimedCluster, topic: str, partition: int = 0) -> bool:
    """Whether no transaction is open there."""
    log = cluster.broker.find_log(topic, partition)
    return log.last_stable_offset == log.high_watermark


def group_offset(cluster: TimedCluster, group: str, topic: str, partition: int = 0) -> int | Exception | None:
    at = TopicPartition(topic, partition)
    fetched = committed_offsets(cluster.resources(), group, [at], require_stable=True)
    found = cluster.result(fetched)[at]
    return found.offset if isinstance(found, CommittedOffset) else found


def offsets(published: Sequence[Published]) -> list[int]:
    return [each.offset for each in published]
