"""Facts that outlive a restart: the cluster id, the count of unclean starts, the next producer id."""

from __future__ import annotations

import sqlite3

from kbroker.catalog.database import Database
from kbroker.storage.pending import Pending


def load(database: Database) -> dict[str, str]:
    return database.read(lambda connection: dict(connection.execute("SELECT name, value FROM facts")))


def save(database: Database, name: str, value: str) -> Pending[None]:
    def write(connection: sqlite3.Connection) -> None:
        connection.execute("INSERT OR REPLACE INTO facts VALUES (?, ?)", (name, value))

    return database.write(write)
