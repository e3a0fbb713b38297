"""What tests do to a catalog's database: write any fact, take its room and give it back, kill it."""

from __future__ import annotations

import os
import sqlite3

from kbroker.catalog.sqlite import facts
from kbroker.catalog.sqlite.database import Database
from kbroker.pending import Pending


def fill_disk(database: Database) -> None:
    (pages,) = _read(database, "PRAGMA page_count")[0]
    _read(database, f"PRAGMA max_page_count={pages}")
    database.read(_fill_free_pages)


def make_room(database: Database) -> None:
    _read(database, "PRAGMA max_page_count=1000000")
    database.write(lambda connection: connection.execute("DROP TABLE IF EXISTS filler")).result()


def save(database: Database, name: str, value: str) -> Pending[None]:
    """A fact, whatever it was."""
    return database.write(lambda connection: facts.put(connection, name, value))


def crash(database: Database) -> None:
    """The process is gone: nothing is closed in order, only its descriptors are."""
    database._connection.close()
    os.close(database._room._descriptor)


def _read(database: Database, query: str) -> list[tuple[object, ...]]:
    return database.read(lambda connection: connection.execute(query).fetchall())


def _fill_free_pages(connection: sqlite3.Connection) -> None:
    try:
        connection.execute("CREATE TABLE IF NOT EXISTS filler (data)")
        while True:
            connection.execute("INSERT INTO filler VALUES (?)", (bytes(200),))
    except sqlite3.OperationalError as error:
        if error.sqlite_errorcode != sqlite3.SQLITE_FULL:
            raise
