"""Configs altered at run time, as rows: (resource type, resource name, config name) → value."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Mapping

from kbroker.catalog.database import Database
from kbroker.pending import Pending

TOPIC = 2  # the resource type of topics in Kafka's protocol


class CatalogConfigStore:
    """The ConfigStore of the configs altered at run time."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def load(self) -> list[tuple[int, str, str, str]]:
        return load(self._database)

    def save(
        self, resource_type: int, resource_name: str, changes: Mapping[str, str | None]
    ) -> Pending[None]:
        return save(self._database, resource_type, resource_name, changes)


def load(database: Database) -> list[tuple[int, str, str, str]]:
    query = "SELECT resource_type, resource_name, name, value FROM configs"
    return database.read(lambda connection: list(connection.execute(query)))


def insert_configs(
    connection: sqlite3.Connection, resource_type: int, resource_name: str, configs: Mapping[str, str]
) -> None:
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
        insert_configs(connection, resource_type, resource_name, kept)

    return database.write(write)
