"""Configs altered at run time, as rows: (resource type, resource name, config name) → value."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Mapping

from kbroker.catalog.rows import ConfigRow
from kbroker.catalog.sqlite.database import Database
from kbroker.pending import Pending


def load(database: Database) -> list[ConfigRow]:
    query = "SELECT resource_type, resource_name, name, value FROM configs"
    return database.read(lambda connection: list(connection.execute(query)))


def insert(
    connection: sqlite3.Connection, resource_type: int, resource_name: str, configs: Mapping[str, str]
) -> None:
    """As part of a transaction."""
    connection.executemany(
        "INSERT OR REPLACE INTO configs VALUES (?, ?, ?, ?)",
        [(resource_type, resource_name, name, value) for name, value in configs.items()],
    )


def save(
    database: Database, resource_type: int, resource_name: str, changes: Mapping[str, str | None]
) -> Pending[None]:
    """Set what has a value, remove what has none."""

    def write(connection: sqlite3.Connection) -> None:
        removed: Iterable[str] = [name for name, value in changes.items() if value is None]
        connection.executemany(
            "DELETE FROM configs WHERE resource_type = ? AND resource_name = ? AND name = ?",
            [(resource_type, resource_name, name) for name in removed],
        )
        kept = {name: value for name, value in changes.items() if value is not None}
        insert(connection, resource_type, resource_name, kept)

    return database.write(write)
