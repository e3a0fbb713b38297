"""All that the broker knows of a catalog, whatever it is kept in (adr/0021).

Invariants of every implementation:
- A write is atomic, and writes take effect in the order in which they are asked for. One that fails leaves
  nothing behind.
- A write's Pending settles once the write outlives the process: at once before ``start``, later after it, and
  then through ``deliver``.
- Several brokers may share a catalog. A write that rests on something (a free name, a number of partitions,
  an earlier value) fails with CatalogConflict if that is not so any more, and tells what it found instead.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, NamedTuple, Protocol

from kbroker.catalog.rows import DeletedTopicRow, Snapshot, TopicRow

if TYPE_CHECKING:
    from kbroker.coordinators.groups.store import GroupStore
    from kbroker.coordinators.shares.store import ShareStateStore
    from kbroker.coordinators.transactions.store import TransactionStore
    from kbroker.pending import Pending
    from kbroker.scheduler import Scheduler

Deliver = Callable[[Callable[[], None]], object]
"""Brings a callback from any thread onto that of the broker."""


class ResourceConfigs(NamedTuple):
    """All configs that a resource has of its own."""

    resource_type: int
    resource_name: str
    configs: Mapping[str, str]


class Entries(NamedTuple):
    """Entries of a table; None: the entry is gone."""

    table: str
    changes: Mapping[str, str | None]


class Fact(NamedTuple):
    name: str
    value: str


Change = TopicRow | DeletedTopicRow | ResourceConfigs | Entries | Fact
"""Something that another broker changed, as it is now."""


class Catalog(Protocol):
    # life

    def snapshot(self) -> Snapshot:
        """Only before ``start``."""
        ...

    def start(self, deliver: Deliver) -> None:
        """From now on writes may take their time; results come through ``deliver``."""
        ...

    def close(self) -> None:
        """Finish the writes already asked for and close. Their results are delivered."""
        ...

    def on_change(self, listener: Callable[[Change], None]) -> None:
        """Tell of what others change, from now on. Where nobody else can, never."""
        ...

    def copy(self, directory: str) -> Pending[None]:
        """Leave a copy in a directory: all that was written, or asked to be, before this call."""
        ...

    def check(self) -> Pending[None]:
        """Settles once it is known whether writes are taken: changes nothing, and waits as a write does."""
        ...

    @property
    def commits(self) -> int:
        """How often something was made durable since it was opened."""
        ...

    # topics

    def create_topic(self, row: TopicRow, configs: Mapping[str, str]) -> Pending[None]:
        """TopicConflict: there is a topic of this name or id."""
        ...

    def grow_topic(self, topic_id: bytes, partitions: int, *, expected: int) -> Pending[None]:
        """TopicConflict: the topic does not have the ``expected`` number of partitions, or is gone."""
        ...

    def delete_topic(self, topic_id: bytes) -> Pending[DeletedTopicRow]:
        """The topic is gone for everybody; it counts as deleted until it is forgotten.

        TopicConflict: it is gone already.
        """
        ...

    def forget_deleted_topic(self, topic_id: bytes) -> Pending[None]:
        """Nothing is left of its files."""
        ...

    # configs and facts

    def save_configs(
        self, resource_type: int, resource_name: str, changes: Mapping[str, str | None]
    ) -> Pending[None]:
        """Set what has a value, remove what has none."""
        ...

    def save_entries(self, table: str, changes: Mapping[str, str | None]) -> Pending[None]:
        """Set what has a value, remove what has none, all or nothing.

        For what is small, read whole at the start and kept in memory. The part of the broker that owns a
        table chooses its name, and what keys and values mean.
        """
        ...

    def save_fact(self, name: str, value: str, *, expected: str | None) -> Pending[None]:
        """FactConflict: the fact is not ``expected`` (None: it does not exist)."""
        ...

    def reserve_producer_ids(self, count: int) -> Pending[range]:
        """So many that nobody was ever given."""
        ...

    # coordinators

    def group_store(self) -> GroupStore: ...

    def transaction_store(self, scheduler: Scheduler) -> TransactionStore:
        """``scheduler``: for what the store does later."""
        ...

    def share_state_store(self, scheduler: Scheduler) -> ShareStateStore:
        """States of topics that are gone are not loaded, and go."""
        ...
