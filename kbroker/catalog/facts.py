"""Facts that outlive a restart: the cluster id, the count of unclean starts, the next producer id,
and up to which entry the catalog has what is noted in a journal.
"""

from __future__ import annotations

import sqlite3

from kbroker.catalog.database import Database
from kbroker.pending import Pending


def load(database: Database) -> dict[str, str]:
    return database.read(lambda connection: dict(connection.execute("SELECT name, value FROM facts")))


def save(database: Database, name: str, value: str) -> Pending[None]:
    return database.write(lambda connection: put(connection, name, value))


def put(connection: sqlite3.Connection, name: str, value: str) -> None:
    """As part of a transaction."""
    connection.execute("INSERT OR REPLACE INTO facts VALUES (?, ?)", (name, value))


def number(connection: sqlite3.Connection, name: str) -> int:
    """0 where there is none."""
    found = connection.execute("SELECT value FROM facts WHERE name = ?", (name,)).fetchone()
    return int(found[0]) if found else 0
