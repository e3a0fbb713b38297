"""Topics and their removal, as rows."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping

from kbroker.catalog.errors import TopicConflict
from kbroker.catalog.rows import TOPIC, DeletedTopicRow, TopicRow
from kbroker.catalog.sqlite import configs
from kbroker.catalog.sqlite.database import Database
from kbroker.pending import Pending

_SELECT = "SELECT name, topic_id, partitions, leader_epoch_base FROM topics"


def load(database: Database) -> list[TopicRow]:
    return database.read(lambda connection: [TopicRow(*row) for row in connection.execute(_SELECT)])


def load_deleted(database: Database) -> list[DeletedTopicRow]:
    query = "SELECT topic_id, name, partitions FROM deleted_topics"
    return database.read(lambda connection: [DeletedTopicRow(*row) for row in connection.execute(query)])


def create(database: Database, row: TopicRow, own_configs: Mapping[str, str]) -> Pending[None]:
    def write(connection: sqlite3.Connection) -> None:
        try:
            connection.execute("INSERT INTO topics VALUES (?, ?, ?, ?)", row)
        except sqlite3.IntegrityError:
            query = f"{_SELECT} WHERE name = ? OR topic_id = ?"
            found = connection.execute(query, (row.name, row.topic_id)).fetchone()
            if found is None:
                raise
            raise TopicConflict(f"there is a topic {found[0]}", TopicRow(*found)) from None
        configs.insert(connection, TOPIC, row.name, own_configs)

    return database.write(write)


def grow(database: Database, topic_id: bytes, partitions: int, expected: int) -> Pending[None]:
    def write(connection: sqlite3.Connection) -> None:
        found = _find(connection, topic_id)
        if found is None or found.partitions != expected:
            raise TopicConflict("the topic does not have the expected number of partitions", found)
        connection.execute("UPDATE topics SET partitions = ? WHERE topic_id = ?", (partitions, topic_id))

    return database.write(write)


def delete(database: Database, topic_id: bytes) -> Pending[DeletedTopicRow]:
    """The topic is gone for everybody; its id is remembered until its files are gone too."""

    def write(connection: sqlite3.Connection) -> DeletedTopicRow:
        found = _find(connection, topic_id)
        if found is None:
            raise TopicConflict("the topic is gone already", None)
        deleted = DeletedTopicRow(topic_id, found.name, found.partitions)
        connection.execute("DELETE FROM topics WHERE topic_id = ?", (topic_id,))
        connection.execute(
            "DELETE FROM configs WHERE resource_type = ? AND resource_name = ?", (TOPIC, found.name)
        )
        connection.execute("INSERT INTO deleted_topics VALUES (?, ?, ?)", deleted)
        return deleted

    return database.write(write)


def forget_deleted(database: Database, topic_id: bytes) -> Pending[None]:
    def write(connection: sqlite3.Connection) -> None:
        connection.execute("DELETE FROM deleted_topics WHERE topic_id = ?", (topic_id,))

    return database.write(write)


def _find(connection: sqlite3.Connection, topic_id: bytes) -> TopicRow | None:
    found = connection.execute(f"{_SELECT} WHERE topic_id = ?", (topic_id,)).fetchone()
    return None if found is None else TopicRow(*found)
