"""What is known of a partition: who leads it, its offsets, its size, the times of its records.

A log that others append to is asked for its offsets before they are told.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from kbroker.operations.offsets import MAX_TIMESTAMP, Found, find_offset, visible_end
from kbroker.pending import Pending, after, mapped, wait
from kbroker.protocol.errors import ApiError, ErrorCode
from kbroker.requests.long_requests import Steps
from kbroker.security.acls import AclOperation

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kbroker.cluster.interface import Connected
    from kbroker.requests.resources import Resources
    from kbroker.storage.interface import Log
    from kbroker.topics.registry import Topic

_FROM_THE_BEGINNING = 0  # ms


class Replicas(NamedTuple):
    """Who has a partition."""

    leader: int
    leader_epoch: int
    replicas: Sequence[int]
    in_sync: Sequence[int]


class Offsets(NamedTuple):
    log_start_offset: int
    last_stable_offset: int
    high_watermark: int
    log_end_offset: int
    size_bytes: int | None
    """For who may describe the cluster, as in DescribeLogDirs."""


class PartitionDescription(NamedTuple):
    partition: int
    replicas: Replicas
    offsets: Offsets


class Times(NamedTuple):
    """Timestamps of records; None: there are none."""

    first: int | None
    largest: int | None


def topic_with_partition(
    resources: Resources, name: str, partition: int, operation: AclOperation = AclOperation.DESCRIBE
) -> Topic:
    """The topic, which has this partition."""
    topic = resources.topic(name, operation)
    if not 0 <= partition < topic.partitions:
        raise ApiError(
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            f"The topic has {topic.partitions} partition(s), from 0 on: there is no partition {partition}.",
        )
    return topic


def replicas_of(resources: Resources, topic: Topic, partition: int, client: Connected) -> Replicas:
    """Of a partition that exists."""
    cluster = resources.broker.cluster
    replicas = cluster.replicas(topic, partition)
    return Replicas(cluster.leader(topic, partition, client), cluster.leader_epoch(topic), replicas, replicas)


def describe_partition(
    resources: Resources, name: str, partition: int, client: Connected
) -> PartitionDescription | Pending[PartitionDescription]:
    topic = topic_with_partition(resources, name, partition)
    log = resources.log_of(topic, partition)
    shows_size = resources.may_cluster(AclOperation.DESCRIBE)

    def described(_: object) -> PartitionDescription:
        replicas = replicas_of(resources, topic, partition, client)
        return PartitionDescription(partition, replicas, _offsets(log, shows_size=shows_size))

    return mapped(log.refresh(), described)


def describe_partitions(
    resources: Resources, name: str, client: Connected, first: int, limit: int
) -> Steps[list[PartitionDescription]]:
    """Up to so many partitions of a topic from this one on."""
    topic = resources.topic(name, AclOperation.DESCRIBE)
    described: list[PartitionDescription] = []
    waiting: list[PartitionDescription | Pending[PartitionDescription]] = []
    for partition in range(max(first, 0), min(first + limit, topic.partitions)):
        # By name again each time: it may be deleted while others have their turn.
        waiting.append(describe_partition(resources, name, partition, client))
        yield None
    for each in waiting:
        described.append((yield from wait(each)) if isinstance(each, Pending) else each)
        yield None
    return described


def record_times(resources: Resources, name: str, partition: int) -> Times | Pending[Times]:
    """Of the first record that has a timestamp, and the largest. They may have to be looked for on disk."""
    log = resources.log_of(topic_with_partition(resources, name, partition), partition)

    def look(_: object) -> Times | Pending[Times]:
        end = visible_end(log, committed=False)
        first = find_offset(log, _FROM_THE_BEGINNING, end)
        if isinstance(first, Pending):
            return after(first, lambda found: _with_largest(log, found, end))
        return _with_largest(log, first, end)

    refreshed = log.refresh()
    return look(None) if refreshed is None else after(refreshed, look)


def offset_at(
    resources: Resources, name: str, partition: int, timestamp: int, *, committed: bool = False
) -> Found | Pending[Found]:
    """The offset of a timestamp, or of one of the special ones of `offsets`; None: there is none."""
    log = resources.log_of(topic_with_partition(resources, name, partition), partition)

    def look(_: object) -> Found | Pending[Found]:
        return find_offset(log, timestamp, visible_end(log, committed=committed))

    refreshed = log.refresh()
    return look(None) if refreshed is None else after(refreshed, look)


def beginning_at(
    resources: Resources, name: str, partition: int, timestamp: int, *, committed: bool = False
) -> int | Pending[int]:
    """The same for a reader: where no record is as young as the timestamp, the next one will be."""
    log = resources.log_of(topic_with_partition(resources, name, partition), partition)

    def look(_: object) -> int | Pending[int]:
        end = visible_end(log, committed=committed)
        return mapped(find_offset(log, timestamp, end), lambda found: end if found is None else found.offset)

    refreshed = log.refresh()
    return look(None) if refreshed is None else after(refreshed, look)


def _offsets(log: Log, *, shows_size: bool) -> Offsets:
    return Offsets(
        log.log_start_offset,
        log.last_stable_offset,
        log.high_watermark,
        log.log_end_offset,
        log.size_bytes if shows_size else None,
    )


def _with_largest(log: Log, first: Found, end: int) -> Times | Pending[Times]:
    def times(largest: Found) -> Times:
        return Times(_timestamp(first), _timestamp(largest))

    return mapped(find_offset(log, MAX_TIMESTAMP, end), times)


def _timestamp(found: Found) -> int | None:
    return None if found is None else found.timestamp
