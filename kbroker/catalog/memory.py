"""A catalog that lives as long as the process: for brokers without a data directory, and for tests.

Writes take effect at once. Their results come at once before ``start``; after it they come later, as those of
other catalogs do, all of one turn of the loop together.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, TypeVar

from kbroker.catalog.errors import CatalogError, FactConflict, TopicConflict
from kbroker.catalog.rows import TOPIC, ConfigRow, DeletedTopicRow, EntryRow, Snapshot, TopicRow
from kbroker.pending import Pending

if TYPE_CHECKING:
    from kbroker.catalog.interface import Change, Deliver
    from kbroker.catalog.memory_groups import MemoryGroupStore
    from kbroker.catalog.memory_shares import MemoryShareStateStore
    from kbroker.catalog.memory_transactions import MemoryTransactionStore
    from kbroker.scheduler import Scheduler

T = TypeVar("T")


class MemoryCatalog:
    def __init__(self) -> None:
        self._facts: dict[str, str] = {}
        self._next_producer_id = 0
        self._topics: dict[bytes, TopicRow] = {}
        self._ids: dict[str, bytes] = {}
        self._deleted: dict[bytes, DeletedTopicRow] = {}
        self._configs: dict[tuple[int, str], dict[str, str]] = {}  # by resource type and name
        self._entries: dict[tuple[str, str], str] = {}  # by table and key
        self._deliver: Deliver | None = None
        self._results: list[Callable[[], None]] = []
        self.commits = 0

    def snapshot(self) -> Snapshot:
        configs: list[ConfigRow] = [
            (*resource, name, value) for resource, own in self._configs.items() for name, value in own.items()
        ]
        return Snapshot(
            dict(self._facts),
            list(self._topics.values()),
            list(self._deleted.values()),
            configs,
            [EntryRow(*key, value) for key, value in self._entries.items()],
            "_groups" in self.__dict__ and not self._groups.is_empty,
            "_transactions" in self.__dict__ and not self._transactions.is_empty,
            "_shares" in self.__dict__ and not self._shares.is_empty,
        )

    def start(self, deliver: Deliver) -> None:
        self._deliver = deliver

    def close(self) -> None:
        pass

    def on_change(self, listener: Callable[[Change], None]) -> None:
        """Nobody else has it."""

    def copy(self, directory: str) -> Pending[None]:
        return self._failed(CatalogError("there is nothing to copy: everything is in memory"))

    def check(self) -> Pending[None]:
        return self._written()

    # topics

    def create_topic(self, row: TopicRow, configs: Mapping[str, str]) -> Pending[None]:
        found = self._topics.get(self._ids.get(row.name, row.topic_id))
        if found is not None:
            return self._failed(TopicConflict(f"there is a topic {found.name}", found))
        self._topics[row.topic_id] = row
        self._ids[row.name] = row.topic_id
        self._set_configs(TOPIC, row.name, configs)
        return self._written()

    def grow_topic(self, topic_id: bytes, partitions: int, *, expected: int) -> Pending[None]:
        found = self._topics.get(topic_id)
        if found is None or found.partitions != expected:
            what = "the topic does not have the expected number of partitions"
            return self._failed(TopicConflict(what, found))
        self._topics[topic_id] = found._replace(partitions=partitions)
        return self._written()

    def delete_topic(self, topic_id: bytes) -> Pending[DeletedTopicRow]:
        found = self._topics.pop(topic_id, None)
        if found is None:
            return self._failed(TopicConflict("the topic is gone already", None))
        del self._ids[found.name]
        self._configs.pop((TOPIC, found.name), None)
        deleted = self._deleted[topic_id] = DeletedTopicRow(topic_id, found.name, found.partitions)
        return self._done(deleted)

    def forget_deleted_topic(self, topic_id: bytes) -> Pending[None]:
        self._deleted.pop(topic_id, None)
        return self._written()

    # configs and facts

    def save_configs(
        self, resource_type: int, resource_name: str, changes: Mapping[str, str | None]
    ) -> Pending[None]:
        self._set_configs(resource_type, resource_name, changes)
        return self._written()

    def _set_configs(self, resource_type: int, resource_name: str, changes: Mapping[str, str | None]) -> None:
        own = self._configs.setdefault((resource_type, resource_name), {})
        for name, value in changes.items():
            if value is None:
                own.pop(name, None)
            else:
                own[name] = value
        if not own:
            del self._configs[resource_type, resource_name]

    def save_entries(self, table: str, changes: Mapping[str, str | None]) -> Pending[None]:
        for key, value in changes.items():
            if value is None:
                self._entries.pop((table, key), None)
            else:
                self._entries[table, key] = value
        return self._written()

    def save_fact(self, name: str, value: str, *, expected: str | None) -> Pending[None]:
        found = self._facts.get(name)
        if found != expected:
            return self._failed(FactConflict(name, found))
        self._facts[name] = value
        return self._written()

    def reserve_producer_ids(self, count: int) -> Pending[range]:
        first = self._next_producer_id
        self._next_producer_id += count
        return self._done(range(first, first + count))

    # coordinators

    def group_store(self) -> MemoryGroupStore:
        return self._groups

    def transaction_store(self, scheduler: Scheduler) -> MemoryTransactionStore:
        return self._transactions

    def share_state_store(self, scheduler: Scheduler) -> MemoryShareStateStore:
        return self._shares

    @cached_property
    def _groups(self) -> MemoryGroupStore:
        from kbroker.catalog.memory_groups import MemoryGroupStore

        return MemoryGroupStore(self._written)

    @cached_property
    def _transactions(self) -> MemoryTransactionStore:
        from kbroker.catalog.memory_transactions import MemoryTransactionStore

        return MemoryTransactionStore(self._written)

    @cached_property
    def _shares(self) -> MemoryShareStateStore:
        from kbroker.catalog.memory_shares import MemoryShareStateStore

        return MemoryShareStateStore(self._topics.__contains__, self._written)

    # results

    def _written(self) -> Pending[None]:
        return self._done(None)

    def _done(self, value: T) -> Pending[T]:
        result: Pending[T] = Pending()
        self._settle(lambda: result.resolve(value))
        return result

    def _failed(self, error: Exception) -> Pending[T]:
        result: Pending[T] = Pending()
        self._settle(lambda: result.fail(error))
        return result

    def _settle(self, settle: Callable[[], None]) -> None:
        if self._deliver is None:
            self.commits += 1
            settle()
            return
        self._results.append(settle)
        if len(self._results) == 1:
            # A RuntimeError means that the loop is closed: nobody is left to hear of it.
            with contextlib.suppress(RuntimeError):
                self._deliver(self._settle_all)

    def _settle_all(self) -> None:
        results, self._results = self._results, []
        self.commits += 1
        for settle in results:
            settle()
