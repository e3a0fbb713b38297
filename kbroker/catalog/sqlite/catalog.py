"""The Catalog in a SQLite database: what its modules do, in one place."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Mapping
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

from kbroker.catalog.errors import CatalogError
from kbroker.catalog.rows import DeletedTopicRow, Snapshot, TopicRow
from kbroker.catalog.sqlite import configs as config_rows
from kbroker.catalog.sqlite import entries, facts, topics
from kbroker.catalog.sqlite.database import Database
from kbroker.catalog.sqlite.file_names import (
    CATALOG,
    OFFSET_JOURNALS,
    SHARE_JOURNALS,
    TRANSACTION_JOURNALS,
    journal_names,
)
from kbroker.catalog.sqlite.stored import groups_are_stored, shares_are_stored, transactions_are_stored
from kbroker.pending import Pending

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kbroker.catalog.interface import Change, Deliver
    from kbroker.catalog.sqlite.groups import SqliteGroupStore
    from kbroker.catalog.sqlite.journal import Journal
    from kbroker.catalog.sqlite.shares import SqliteShareStateStore
    from kbroker.catalog.sqlite.transactions import SqliteTransactionStore
    from kbroker.scheduler import Scheduler
    from kbroker.storage.files import Files


class SqliteCatalog:
    def __init__(self, database: Database, files: Files | None = None) -> None:
        """`files`: where its journals are."""
        self._database = database
        self._files = files
        # until it is known better
        self._groups_stored = self._transactions_stored = self._shares_stored = True

    @classmethod
    def open(cls, directory: Path, *, fsync: bool = False) -> SqliteCatalog:
        """``fsync``: nothing is answered before the disk has it."""
        return cls(Database(directory / CATALOG, sync_full=fsync))

    def snapshot(self) -> Snapshot:
        database = self._database
        self._groups_stored = groups_are_stored(database)
        self._transactions_stored = transactions_are_stored(database)
        self._shares_stored = shares_are_stored(database)
        return Snapshot(
            facts.load(database),
            topics.load(database),
            topics.load_deleted(database),
            config_rows.load(database),
            entries.load(database),
            self._groups_stored,
            self._transactions_stored,
            self._shares_stored,
        )

    def fact(self, name: str) -> str | None:
        """Only before ``start``."""
        return self._database.read(lambda connection: facts.get(connection, name))

    def start(self, deliver: Deliver) -> None:
        self._database.start(deliver)

    def close(self) -> None:
        self._database.close()

    def on_change(self, listener: Callable[[Change], None]) -> None:
        """The data directory is locked: nobody else changes anything."""

    def copy(self, directory: str) -> Pending[None]:
        """The journals as they are now: what they hold may have left them when the database is copied."""
        source, target = self._database.directory, Path(directory)
        try:
            journals = {
                name: (source / name).read_bytes() for name in journal_names() if (source / name).exists()
            }
        except OSError as error:
            return Pending.failed(CatalogError(f"the catalog cannot be copied: {error}"))

        def copy(connection: sqlite3.Connection) -> None:
            with closing(sqlite3.connect(target / CATALOG)) as copied:
                connection.backup(copied)
            for name, content in journals.items():
                (target / name).write_bytes(content)

        return self._database.alone(copy)

    def check(self) -> Pending[None]:
        return facts.check(self._database)

    @property
    def commits(self) -> int:
        return self._database.commits

    def create_topic(self, row: TopicRow, configs: Mapping[str, str]) -> Pending[None]:
        return topics.create(self._database, row, configs)

    def grow_topic(self, topic_id: bytes, partitions: int, *, expected: int) -> Pending[None]:
        return topics.grow(self._database, topic_id, partitions, expected)

    def delete_topic(self, topic_id: bytes) -> Pending[DeletedTopicRow]:
        return topics.delete(self._database, topic_id)

    def forget_deleted_topic(self, topic_id: bytes) -> Pending[None]:
        return topics.forget_deleted(self._database, topic_id)

    def save_configs(
        self, resource_type: int, resource_name: str, changes: Mapping[str, str | None]
    ) -> Pending[None]:
        return config_rows.save(self._database, resource_type, resource_name, changes)

    def save_entries(self, table: str, changes: Mapping[str, str | None]) -> Pending[None]:
        return entries.save(self._database, table, changes)

    def save_fact(self, name: str, value: str, *, expected: str | None) -> Pending[None]:
        return facts.save(self._database, name, value, expected)

    def reserve_producer_ids(self, count: int) -> Pending[range]:
        return facts.reserve_producer_ids(self._database, count)

    # What has to be on the disk before it is answered does not go into a journal, which is not synced.

    def group_store(self) -> SqliteGroupStore:
        from kbroker.catalog.sqlite.groups import SqliteGroupStore

        return SqliteGroupStore(
            self._database,
            self._journal(OFFSET_JOURNALS),
            journals=not self._database.sync_full,
            stored=self._groups_stored,
        )

    def transaction_store(self, scheduler: Scheduler) -> SqliteTransactionStore:
        from kbroker.catalog.sqlite.transactions import SqliteTransactionStore

        return SqliteTransactionStore(
            self._database,
            self._journal(TRANSACTION_JOURNALS),
            None if self._database.sync_full else scheduler,
            stored=self._transactions_stored,
        )

    def share_state_store(self, scheduler: Scheduler) -> SqliteShareStateStore:
        from kbroker.catalog.sqlite.shares import SqliteShareStateStore

        return SqliteShareStateStore(
            self._database,
            self._journal(SHARE_JOURNALS),
            None if self._database.sync_full else scheduler,
            stored=self._shares_stored,
        )

    def _journal(self, names: Sequence[str]) -> Journal:
        from kbroker.catalog.sqlite.journal import Journal
        from kbroker.storage.files import Files

        return Journal(self._files or Files(), self._database.directory, names)
