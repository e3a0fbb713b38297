"""Families with one series per partition that a group has committed: there may be tens of thousands.

The partitions of a group stand in chunks, whose text is kept with gaps for the values. It is made anew when
the group commits other partitions than before, or a topic was made, grown or deleted. Offsets and lags are
read once in each scrape.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from kbroker.observability.families import GAUGE, Family, Number, Piece, escaped, pieces, text_of
from kbroker.observability.partition_series import end_offset
from kbroker.storage.errors import StorageError

if TYPE_CHECKING:
    from kbroker.broker import Broker
    from kbroker.coordinators.groups.coordinator import GroupCoordinator
    from kbroker.coordinators.groups.store import CommittedOffset, TopicPartition
    from kbroker.observability.exposition import Exposition
    from kbroker.topics.registry import Topic

LABELS = ("consumergroup", "topic", "partition")
_TOPIC_LABELS = ("consumergroup", "topic")
_CHUNK = 100  # partitions


def groups_of(broker: Broker) -> GroupCoordinator | None:
    """The coordinator, if anybody ever asked for it: looking does not make it."""
    return broker.__dict__.get("groups")


class Chunk:
    """Some partitions of a group."""

    __slots__ = ("at", "group_id", "labels", "lags", "log_keys", "offsets", "positions", "texts")

    def __init__(self, group_id: str) -> None:
        self.group_id = group_id
        self.at: list[TopicPartition] = []
        self.positions: list[int] = []
        """Where they stand among what the group has committed."""
        self.log_keys: list[tuple[bytes, int]] = []
        self.labels: list[str] = []
        self.texts: dict[str, str] = {}
        """By family."""
        self.offsets: list[int] = []
        self.lags: list[int] = []
        """-1: the log cannot be read."""

    def text(self, family: str, numbers: Sequence[Number | str]) -> str:
        text = self.texts.get(family)
        if text is None:
            text = self.texts[family] = "".join([f"{family}{labels} %s\n" for labels in self.labels])
        return text % tuple(numbers)


class _Group:
    __slots__ = ("chunks", "committed", "generation")

    def __init__(self, generation: int, committed: list[TopicPartition]) -> None:
        self.generation = generation
        self.committed = committed
        self.chunks: list[Chunk] = []


class GroupLayout:
    """All groups with offsets, as they were in the last scrape."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._generation = 0  # of the topics
        self._groups: dict[str, _Group] = {}
        self._scrape = 0
        self.chunks: list[Chunk] = []
        """Group by group, by name."""
        self.left_out = 0
        broker.topics.on_change(self._topic_changed)

    def _topic_changed(self, topic: Topic, exists: bool) -> None:
        self._generation += 1

    def read(self, exposition: Exposition) -> Iterator[str]:
        """Read offsets and lags, if that was not done in this scrape; pauses."""
        number = exposition.scrapes
        if self._scrape == number:
            return
        groups = groups_of(self._broker)
        chunks: list[Chunk] = []
        known: dict[str, _Group] = {}
        left, left_out = exposition.most, 0
        for group_id in [] if groups is None else sorted(groups.offsets.group_ids()):
            assert groups is not None
            offsets = groups.offsets.committed(group_id)
            committed, values = list(offsets), list(offsets.values())
            group = self._groups.get(group_id)
            if group is None or group.generation != self._generation or group.committed != committed:
                group = _Group(self._generation, committed)
                yield from self._lay_out(group_id, group)
            known[group_id] = group
            for chunk in group.chunks:
                if left <= 0:
                    left_out += len(chunk.at)
                    continue
                left -= len(chunk.at)
                self._read(chunk, values)
                chunks.append(chunk)
                yield ""
        self._groups, self._scrape = known, number
        self.chunks, self.left_out = chunks, left_out

    def _lay_out(self, group_id: str, group: _Group) -> Iterator[str]:
        name = escaped(group_id).replace("%", "%%")
        topics = self._broker.topics
        chunk = Chunk(group_id)
        for position, at in enumerate(group.committed):
            topic = topics.get(at.topic)
            if topic is None or at.partition >= topic.partitions:
                continue
            chunk.at.append(at)
            chunk.positions.append(position)
            chunk.log_keys.append((topic.topic_id, at.partition))
            chunk.labels.append(
                f'{{consumergroup="{name}",topic="{escaped(at.topic)}",partition="{at.partition}"}}'
            )
            if len(chunk.at) == _CHUNK:
                group.chunks.append(chunk)
                chunk = Chunk(group_id)
                yield ""
        if chunk.at:
            group.chunks.append(chunk)

    def _read(self, chunk: Chunk, values: list[CommittedOffset]) -> None:
        chunk.offsets = [values[position].offset for position in chunk.positions]
        find = self._broker.open_logs.get
        lags: list[int] = []
        for key, at, offset in zip(chunk.log_keys, chunk.at, chunk.offsets, strict=True):
            log = find(key)
            try:
                end = log.high_watermark if log else end_offset(self._broker, None, at.topic, at.partition)
            except (OSError, StorageError):
                lags.append(-1)
            else:
                lags.append(end - offset if end > offset else 0)
        chunk.lags = lags


Read = Callable[[Chunk], list[int]]


def by_group_partition(name: str, doc: str, read: Read) -> Family:
    def write(exposition: Exposition, family: Family) -> Iterator[Piece]:
        layout = exposition.kept(GroupLayout)
        yield from layout.read(exposition)
        for chunk in layout.chunks:
            yield chunk.text(name, read(chunk))
        exposition.leave_out(family, layout.left_out)

    return Family(name, GAUGE, doc, LABELS, write)


def by_group_topic(name: str, doc: str, read: Read) -> Family:
    """The sum over a topic's partitions."""

    def write(exposition: Exposition, family: Family) -> Iterator[Piece]:
        layout = exposition.kept(GroupLayout)
        yield from layout.read(exposition)
        sums: dict[tuple[str, ...], int] = {}
        for chunk in layout.chunks:
            group_id = chunk.group_id
            for at, number in zip(chunk.at, read(chunk), strict=True):
                of = group_id, at.topic
                sums[of] = sums.get(of, 0) + max(number, 0)
            yield ""
        prefixes = exposition.prefixes(family)
        lines = (f"{prefixes[of]} {text_of(number)}\n" for of, number in sums.items())
        yield from pieces(exposition.within_bounds(family, lines))

    return Family(name, GAUGE, doc, _TOPIC_LABELS, write)


def offsets_of(chunk: Chunk) -> list[int]:
    return chunk.offsets


def lags_of(chunk: Chunk) -> list[int]:
    return chunk.lags


def members_of(broker: Broker) -> Iterator[tuple[tuple[str, ...], int]]:
    groups = groups_of(broker)
    if groups is None:
        return
    for group_id, group in list(groups.groups.items()):
        yield (group_id,), len(group.members)
