"""A catalog on a disk without room, and with room again."""

from __future__ import annotations

import sqlite3

from kbroker.catalog.database import Database


def fill_disk(database: Database) -> None:
    (pages,) = _read(database, "PRAGMA page_count")[0]
    _read(database, f"PRAGMA max_page_count={pages}")
    database.read(_fill_free_pages)


def make_room(database: Database) -> None:
    _read(database, "PRAGMA max_page_count=1000000")
    database.write(lambda connection: connection.execute("DROP TABLE IF EXISTS filler")).result()


def crash(database: Database) -> None:
    """The process is gone: nothing is closed in order."""
    database._connection.close()


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
