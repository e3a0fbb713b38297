"""The registry of topics: what exists, under which name and id, with how many partitions and which configs.

Invariants:
- The catalog is the truth; this is its image in memory. A change shows here once it is committed there, so
  that nobody sees a topic that a crash could take back. The catalog refuses what another broker was quicker
  with, whatever the image says.
- A name is reserved from the moment its creation is asked for; two creations cannot both win.
- A deleted topic vanishes at once; its id stays in the catalog until its files are gone, so that a crash in
  between leaves no half topic.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from kbroker.catalog.errors import CatalogConflict, TopicConflict
from kbroker.catalog.rows import DeletedTopicRow, TopicRow
from kbroker.pending import Pending
from kbroker.protocol.errors import ApiError, ErrorCode
from kbroker.protocol.types import RESERVED_UUIDS
from kbroker.topics.names import check_name

if TYPE_CHECKING:
    from kbroker.catalog.interface import Catalog


class Topic:
    __slots__ = ("configs", "leader_epoch_base", "name", "partitions", "topic_id")

    def __init__(
        self, name: str, topic_id: bytes, partitions: int, leader_epoch_base: int, configs: dict[str, str]
    ) -> None:
        self.name = name
        self.topic_id = topic_id
        self.partitions = partitions
        self.leader_epoch_base = leader_epoch_base
        self.configs = configs


class Topics:
    def __init__(
        self, catalog: Catalog, rows: Iterable[TopicRow], configs: Mapping[str, dict[str, str]]
    ) -> None:
        """``rows``: the topics of the catalog; ``configs``: each topic's own configs."""
        self._catalog = catalog
        self._by_name: dict[str, Topic] = {}
        self._by_id: dict[bytes, Topic] = {}
        self._by_collision_key: dict[str, str] = {}
        self._reserved: set[str] = set()
        self._listeners: list[Callable[[Topic, bool], None]] = []
        self._watchers: dict[bytes, dict[object, Callable[[], None]]] = {}  # by topic id
        self.partition_count = 0
        for row in rows:
            self._add(Topic(*row, configs.get(row.name, {})))

    def __len__(self) -> int:
        return len(self._by_name)

    def __iter__(self) -> Iterator[Topic]:
        return iter(self._by_name.values())

    def get(self, name: str) -> Topic | None:
        return self._by_name.get(name)

    def get_by_id(self, topic_id: bytes) -> Topic | None:
        return self._by_id.get(topic_id)

    def has_partition(self, name: str, partition: int) -> bool:
        topic = self._by_name.get(name)
        return topic is not None and 0 <= partition < topic.partitions

    def is_reserved(self, name: str) -> bool:
        """Whether a topic of this name is being created or deleted."""
        return name in self._reserved

    def names(self) -> list[str]:
        return sorted(self._by_name)

    def on_change(self, listener: Callable[[Topic, bool], None]) -> Callable[[], None]:
        """``listener(topic, exists)`` is called after a topic was made or grown (True) or deleted (False).

        Returns the function that ends it.
        """
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    def watch(self, topic_id: bytes, callback: Callable[[], None]) -> Callable[[], None]:
        """Called whenever this topic was grown or deleted. Returns the function that ends it."""
        token = object()
        self._watchers.setdefault(topic_id, {})[token] = callback

        def unwatch() -> None:
            watchers = self._watchers.get(topic_id, {})
            watchers.pop(token, None)
            if not watchers:
                self._watchers.pop(topic_id, None)

        return unwatch

    def check_new(self, name: str) -> None:
        """Whether a topic of this name may be created now."""
        check_name(name)
        if name in self._by_name or name in self._reserved:
            raise _exists(name)
        other = self._by_collision_key.get(_collision_key(name))
        if other is not None:
            raise ApiError(
                ErrorCode.INVALID_TOPIC_EXCEPTION,
                f"The name '{name}' differs from the topic '{other}' only in '.' and '_'.",
            )

    def create(
        self, name: str, partitions: int, configs: dict[str, str], leader_epoch_base: int
    ) -> Pending[Topic]:
        """Make a topic whose parameters are checked. The result comes when it is durable and visible."""
        self.check_new(name)
        return self._insert(Topic(name, new_topic_id(), partitions, leader_epoch_base, configs))

    def adopt(self, topic: Topic) -> Pending[Topic]:
        """Take in a topic whose files exist already."""
        self.check_new(topic.name)
        return self._insert(topic)

    def add_partitions(self, topic: Topic, partitions: int) -> Pending[Topic]:
        result: Pending[Topic] = Pending()

        def grow(expected: int) -> None:
            self._catalog.grow_topic(topic.topic_id, partitions, expected=expected).then(committed)

        def committed(write: Pending[None]) -> None:
            try:
                write.result()
            except TopicConflict as conflict:
                outgrown(conflict.found)
            except Exception as error:
                result.fail(error)
            else:
                self._has_grown(topic, partitions)
                result.resolve(topic)

        def outgrown(found: TopicRow | None) -> None:
            """Another growth, or the deletion, of the topic came first."""
            if found is None:
                result.fail(ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION))
                return
            self._has_grown(topic, found.partitions)
            if found.partitions < partitions:
                grow(found.partitions)
            else:
                result.fail(
                    ApiError(
                        ErrorCode.INVALID_PARTITIONS,
                        f"The topic already has {found.partitions} partition(s).",
                    )
                )

        grow(topic.partitions)
        return result

    def _has_grown(self, topic: Topic, partitions: int) -> None:
        if self._by_id.get(topic.topic_id) is topic and partitions > topic.partitions:
            self.partition_count += partitions - topic.partitions
            topic.partitions = partitions
            self._notify(topic, exists=True)

    def delete(self, topic: Topic) -> Pending[Topic]:
        """The topic is invisible at once; the result comes when that is durable."""
        result: Pending[Topic] = Pending()
        self._remove(topic)
        self._reserved.add(topic.name)

        def committed(write: Pending[DeletedTopicRow]) -> None:
            self._reserved.discard(topic.name)
            try:
                topic.partitions = write.result().partitions
            except CatalogConflict:  # somebody else deleted it
                self._notify(topic, exists=False)
                result.fail(ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "There is no such topic."))
            except Exception as error:
                self._add(topic)
                result.fail(error)
            else:
                self._notify(topic, exists=False)
                result.resolve(topic)

        self._catalog.delete_topic(topic.topic_id).then(committed)
        return result

    def _insert(self, topic: Topic) -> Pending[Topic]:
        result: Pending[Topic] = Pending()
        self._reserved.add(topic.name)
        key = _collision_key(topic.name)
        self._by_collision_key[key] = topic.name
        row = TopicRow(topic.name, topic.topic_id, topic.partitions, topic.leader_epoch_base)

        def committed(write: Pending[None]) -> None:
            self._reserved.discard(topic.name)
            try:
                write.result()
            except Exception as error:
                self._by_collision_key.pop(key, None)
                result.fail(_exists(topic.name) if isinstance(error, CatalogConflict) else error)
                return
            self._add(topic)
            self._notify(topic, exists=True)
            result.resolve(topic)

        self._catalog.create_topic(row, topic.configs).then(committed)
        return result

    def _add(self, topic: Topic) -> None:
        self._by_name[topic.name] = topic
        self._by_id[topic.topic_id] = topic
        self._by_collision_key[_collision_key(topic.name)] = topic.name
        self.partition_count += topic.partitions

    def _remove(self, topic: Topic) -> None:
        del self._by_name[topic.name]
        del self._by_id[topic.topic_id]
        self._by_collision_key.pop(_collision_key(topic.name), None)
        self.partition_count -= topic.partitions

    def _notify(self, topic: Topic, *, exists: bool) -> None:
        for listener in list(self._listeners):
            listener(topic, exists)
        for callback in list(self._watchers.get(topic.topic_id, {}).values()):
            callback()


def _exists(name: str) -> ApiError:
    return ApiError(ErrorCode.TOPIC_ALREADY_EXISTS, f"There is a topic '{name}' already.")


def _collision_key(name: str) -> str:
    """Metric names cannot tell '.' from '_', so Kafka does not let two topics differ in that alone."""
    return name.replace(".", "_")


def new_topic_id() -> bytes:
    """A random one that no topic has."""
    while True:
        topic_id = bytearray(os.urandom(16))
        topic_id[6] = topic_id[6] & 0x0F | 0x40  # a version 4 UUID
        topic_id[8] = topic_id[8] & 0x3F | 0x80
        # An id that begins with a dash in base64 reads as a flag on command lines.
        if bytes(topic_id) not in RESERVED_UUIDS and topic_id[0] >> 2 != 62:
            return bytes(topic_id)
