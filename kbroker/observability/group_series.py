"""Families with one series per partition that a group has committed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from kbroker.observability.families import GAUGE, Family, Number, labels_text, pieces, text_of
from kbroker.observability.partition_series import end_offset
from kbroker.storage.errors import StorageError

if TYPE_CHECKING:
    from kbroker.broker import Broker
    from kbroker.coordinators.groups.coordinator import GroupCoordinator
    from kbroker.coordinators.groups.store import CommittedOffset, TopicPartition
    from kbroker.observability.exposition import Exposition

LABELS = ("consumergroup", "topic", "partition")
_TOPIC_LABELS = ("consumergroup", "topic")

Of = Callable[["Broker", str, "TopicPartition", "CommittedOffset"], Number | None]
"""A number about a partition of a group; None: there is none to tell."""


def groups_of(broker: Broker) -> GroupCoordinator | None:
    """The coordinator, if anybody ever asked for it: looking does not make it."""
    return broker.__dict__.get("groups")


class GroupLabels:
    """The labels of the series, kept: by group and partition."""

    def __init__(self, broker: Broker) -> None:
        self._by_group: dict[str, dict[TopicPartition, str]] = {}

    def of(self, group_id: str) -> dict[TopicPartition, str]:
        return self._by_group.setdefault(group_id, {})

    def keep(self, group_ids: set[str]) -> None:
        """Forget all other groups."""
        if len(self._by_group) > len(group_ids):
            self._by_group = {group: kept for group, kept in self._by_group.items() if group in group_ids}


def committed(broker: Broker) -> Iterator[tuple[str, list[tuple[TopicPartition, CommittedOffset]]]]:
    """Group by group, what it has committed."""
    groups = groups_of(broker)
    if groups is None:
        return
    for group_id in sorted(groups.offsets.group_ids()):
        yield group_id, list(groups.offsets.committed(group_id).items())


def by_group_partition(name: str, doc: str, read: Of) -> Family:
    def lines(exposition: Exposition) -> Iterator[str]:
        broker = exposition.broker
        kept = exposition.kept(GroupLabels)
        seen: set[str] = set()
        for group_id, offsets in committed(broker):
            seen.add(group_id)
            texts = kept.of(group_id)
            if len(texts) > 2 * len(offsets):
                texts.clear()
            for at, offset in offsets:
                number = read(broker, group_id, at, offset)
                if number is None:
                    continue
                labels = texts.get(at)
                if labels is None:
                    labels = texts[at] = labels_text(LABELS, (group_id, at.topic, str(at.partition)))
                yield f"{name}{labels} {text_of(number)}\n"
        kept.keep(seen)

    def write(exposition: Exposition, family: Family) -> Iterator[str]:
        yield from pieces(exposition.within_bounds(family, lines(exposition)))

    return Family(name, GAUGE, doc, LABELS, write)


def by_group_topic(name: str, doc: str, read: Of) -> Family:
    """The sum over a topic's partitions."""

    def lines(exposition: Exposition, family: Family) -> Iterator[str]:
        broker = exposition.broker
        prefixes = exposition.prefixes(family)
        for group_id, offsets in committed(broker):
            sums: dict[str, Number] = {}
            for at, offset in offsets:
                number = read(broker, group_id, at, offset)
                if number is not None:
                    sums[at.topic] = sums.get(at.topic, 0) + number
            for topic in sorted(sums):
                yield f"{prefixes[group_id, topic]} {text_of(sums[topic])}\n"

    def write(exposition: Exposition, family: Family) -> Iterator[str]:
        yield from pieces(exposition.within_bounds(family, lines(exposition, family)))

    return Family(name, GAUGE, doc, _TOPIC_LABELS, write)


def offset_of(broker: Broker, group_id: str, at: TopicPartition, offset: CommittedOffset) -> int:
    return offset.offset


def lag_of(broker: Broker, group_id: str, at: TopicPartition, offset: CommittedOffset) -> int | None:
    topic = broker.topics.get(at.topic)
    if topic is None:
        return None
    log = broker.open_logs.get((topic.topic_id, at.partition))
    try:
        end = end_offset(broker, log, at.topic, at.partition)
    except (OSError, StorageError):
        return None
    return max(end - offset.offset, 0)


def members_of(broker: Broker) -> Iterator[tuple[tuple[str, ...], int]]:
    groups = groups_of(broker)
    if groups is None:
        return
    for group_id, group in list(groups.groups.items()):
        yield (group_id,), len(group.members)
