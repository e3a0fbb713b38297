"""Topics and their removal, as rows."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from typing import NamedTuple

from kbroker.catalog.configs import TOPIC, insert_configs
from kbroker.catalog.database import Database
from kbroker.pending import Pending


class TopicRow(NamedTuple):
    name: str
    topic_id: bytes
    partitions: int
    leader_epoch_base: int


class DeletedTopicRow(NamedTuple):
    topic_id: bytes
    name: str
    partitions: int


def load(database: Database) -> list[TopicRow]:
    query = "SELECT name, topic_id, partitions, leader_epoch_base FROM topics"
    return database.read(lambda connection: [TopicRow(*row) for row in connection.execute(query)])


def load_deleted(database: Database) -> list[DeletedTopicRow]:
    query = "SELECT topic_id, name, partitions FROM deleted_topics"
    return database.read(lambda connection: [DeletedTopicRow(*row) for row in connection.execute(query)])


def insert(database: Database, row: TopicRow, configs: Mapping[str, str]) -> Pending[None]:
    def write(connection: sqlite3.Connection) -> None:
        connection.execute("INSERT INTO topics VALUES (?, ?, ?, ?)", row)
        insert_configs(connection, TOPIC, row.name, configs)

    return database.write(write)


def set_partitions(database: Database, name: str, partitions: int) -> Pending[None]:
    def write(connection: sqlite3.Connection) -> None:
        connection.execute("UPDATE topics SET partitions = ? WHERE name = ?", (partitions, name))

    return database.write(write)


def delete(database: Database, row: DeletedTopicRow) -> Pending[None]:
    """The topic is gone for everybody; its id is remembered until its files are gone too."""

    def write(connection: sqlite3.Connection) -> None:
        connection.execute("DELETE FROM topics WHERE name = ?", (row.name,))
        connection.execute(
            "DELETE FROM configs WHERE resource_type = ? AND resource_name = ?", (TOPIC, row.name)
        )
        connection.execute("INSERT INTO deleted_topics VALUES (?, ?, ?)", row)

    return database.write(write)


def forget_deleted(database: Database, topic_id: bytes) -> Pending[None]:
    def write(connection: sqlite3.Connection) -> None:
        connection.execute("DELETE FROM deleted_topics WHERE topic_id = ?", (topic_id,))

    return database.write(write)
