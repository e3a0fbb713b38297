"""Facts as rows: the cluster id, the count of unclean starts, the features, the next producer id,
and up to which entry the database has what stands in a journal.
"""

from __future__ import annotations

import sqlite3

from kbroker.catalog.errors import FactConflict
from kbroker.catalog.sqlite.database import Database
from kbroker.pending import Pending

_NEXT_PRODUCER_ID = "producer.id.next"


def load(database: Database) -> dict[str, str]:
    return database.read(lambda connection: dict(connection.execute("SELECT name, value FROM facts")))


def save(database: Database, name: str, value: str, expected: str | None) -> Pending[None]:
    def write(connection: sqlite3.Connection) -> None:
        found = get(connection, name)
        if found != expected:
            raise FactConflict(name, found)
        put(connection, name, value)

    return database.write(write)


def reserve_producer_ids(database: Database, count: int) -> Pending[range]:
    def write(connection: sqlite3.Connection) -> range:
        first = number(connection, _NEXT_PRODUCER_ID)
        put(connection, _NEXT_PRODUCER_ID, str(first + count))
        return range(first, first + count)

    return database.write(write)


def check(database: Database) -> Pending[None]:
    def look(connection: sqlite3.Connection) -> None:
        number(connection, _NEXT_PRODUCER_ID)

    return database.write(look)


def put(connection: sqlite3.Connection, name: str, value: str) -> None:
    """As part of a transaction."""
    connection.execute("INSERT OR REPLACE INTO facts VALUES (?, ?)", (name, value))


def get(connection: sqlite3.Connection, name: str) -> str | None:
    found = connection.execute("SELECT value FROM facts WHERE name = ?", (name,)).fetchone()
    return None if found is None else str(found[0])


def number(connection: sqlite3.Connection, name: str) -> int:
    """0 where there is none."""
    return int(get(connection, name) or 0)
