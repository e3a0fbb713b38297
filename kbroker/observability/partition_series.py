"""Families with one series per partition: there may be tens of thousands.

The partitions stand in chunks. Of each chunk the text is kept, with gaps where the values go; it is made anew
when a topic was made, grown or deleted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from kbroker.observability.families import GAUGE, Family, escaped
from kbroker.storage.errors import StorageError

if TYPE_CHECKING:
    from kbroker.broker import Broker
    from kbroker.observability.exposition import Exposition
    from kbroker.storage.interface import Log
    from kbroker.topics.registry import Topic

_CHUNK = 50  # partitions: also those whose files must be looked at take less than a millisecond


class Chunk:
    """Some partitions, and their texts by family."""

    __slots__ = ("labels", "places", "texts")

    def __init__(self) -> None:
        self.places: list[tuple[tuple[bytes, int], str]] = []
        """What open logs are known by, and the topic's name."""
        self.labels: list[str] = []
        self.texts: dict[str, str] = {}


class Layout:
    """All partitions, in chunks."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._chunks: list[Chunk] = []
        self._generation = 0  # of the topics
        self._laid_out = (-1, 0)  # at which generation, for how many partitions
        self.left_out = 0
        broker.topics.on_change(self._topic_changed)

    def _topic_changed(self, topic: Topic, exists: bool) -> None:
        self._generation += 1

    def chunks(self, most: int) -> Iterator[Chunk]:
        """Of as many partitions at most."""
        if self._laid_out != (self._generation, most):
            yield from self._lay_out(most)
        else:
            yield from list(self._chunks)

    def _lay_out(self, most: int) -> Iterator[Chunk]:
        begun = (self._generation, most)
        chunks: list[Chunk] = []
        left = most
        chunk = Chunk()
        for topic in list(self._broker.topics):
            name = escaped(topic.name)
            for partition in range(min(topic.partitions, left)):
                chunk.places.append(((topic.topic_id, partition), topic.name))
                chunk.labels.append(f'{{topic="{name}",partition="{partition}"}}')
                if len(chunk.places) == _CHUNK:
                    chunks.append(chunk)
                    yield chunk
                    chunk = Chunk()
            left -= min(topic.partitions, left)
        if chunk.places:
            chunks.append(chunk)
            yield chunk
        if self._generation == begun[0]:  # else what was laid out is of yesterday
            self._chunks, self._laid_out = chunks, begun
            self.left_out = self._broker.topics.partition_count - (most - left)


def by_partition(name: str, doc: str, read: Callable[[Broker, Log | None, str, int], int]) -> Family:
    """``read``: of an open log, or else of a partition that is not open now."""

    def write(exposition: Exposition, family: Family) -> Iterator[str]:
        broker = exposition.broker
        layout = exposition.kept(Layout)
        for chunk in layout.chunks(exposition.most):
            text = chunk.texts.get(name)
            if text is None:
                text = chunk.texts[name] = "".join([f"{name}{labels} %s\n" for labels in chunk.labels])
            find = broker.open_logs.get
            yield text % tuple([_read(read, broker, find(key), topic, key[1]) for key, topic in chunk.places])
        exposition.leave_out(family, layout.left_out)

    return Family(name, GAUGE, doc, ("topic", "partition"), write)


def _read(
    read: Callable[[Broker, Log | None, str, int], int],
    broker: Broker,
    log: Log | None,
    topic: str,
    partition: int,
) -> int | str:
    try:
        return read(broker, log, topic, partition)
    except (OSError, StorageError):
        return "NaN"


def of_every_partition(name: str, doc: str, read: Callable[[Broker], int]) -> Family:
    """The same number for all: there is one broker."""

    def write(exposition: Exposition, family: Family) -> Iterator[str]:
        layout = exposition.kept(Layout)
        number = read(exposition.broker)
        for chunk in layout.chunks(exposition.most):
            text = chunk.texts.get(name)
            if text is None:
                text = chunk.texts[name] = "".join([f"{name}{each} {number}\n" for each in chunk.labels])
            yield text
        exposition.leave_out(family, layout.left_out)

    return Family(name, GAUGE, doc, ("topic", "partition"), write)


def end_offset(broker: Broker, log: Log | None, topic: str, partition: int) -> int:
    """What readers may see: of a log that is not open, its end."""
    return log.high_watermark if log is not None else broker.logs.offsets(topic, partition)[1]


def start_offset(broker: Broker, log: Log | None, topic: str, partition: int) -> int:
    return log.log_start_offset if log is not None else broker.logs.offsets(topic, partition)[0]


def size_bytes(broker: Broker, log: Log | None, topic: str, partition: int) -> int:
    return log.size_bytes if log is not None else broker.logs.size_of(topic, partition)
