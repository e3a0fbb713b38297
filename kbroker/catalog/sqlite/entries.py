"""Small tables that parts of the broker keep, as rows: (table, key) → value."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping

from kbroker.catalog.rows import EntryRow
from kbroker.catalog.sqlite.database import Database
from kbroker.pending import Pending


def load(database: Database) -> list[EntryRow]:
    query = 'SELECT "table", key, value FROM entries'
    return database.read(lambda connection: [EntryRow(*row) for row in connection.execute(query)])


def save(database: Database, table: str, changes: Mapping[str, str | None]) -> Pending[None]:
    """Set what has a value, remove what has none."""

    def write(connection: sqlite3.Connection) -> None:
        connection.executemany(
            'DELETE FROM entries WHERE "table" = ? AND key = ?',
            [(table, key) for key, value in changes.items() if value is None],
        )
        connection.executemany(
            "INSERT OR REPLACE INTO entries VALUES (?, ?, ?)",
            [(table, key, value) for key, value in changes.items() if value is not None],
        )

    return database.write(write)
