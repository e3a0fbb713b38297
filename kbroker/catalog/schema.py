"""The catalog's schema, as the ordered list of migrations that leads to it.

``PRAGMA user_version`` holds how many of them a database has seen. A released migration never changes; a new
need is a new entry at the end.
"""

from __future__ import annotations

MIGRATIONS: tuple[str, ...] = (
    """
    CREATE TABLE facts (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;

    CREATE TABLE topics (
        name TEXT PRIMARY KEY,
        topic_id BLOB NOT NULL UNIQUE,
        partitions INTEGER NOT NULL,
        -- added to the number of unclean starts it gives the leader epoch, so that a new topic begins at 0
        leader_epoch_base INTEGER NOT NULL
    ) WITHOUT ROWID;

    -- topics whose removal is decided and whose files may still be there
    CREATE TABLE deleted_topics (
        topic_id BLOB PRIMARY KEY,
        name TEXT NOT NULL,
        partitions INTEGER NOT NULL
    ) WITHOUT ROWID;

    CREATE TABLE configs (
        resource_type INTEGER NOT NULL,
        resource_name TEXT NOT NULL,
        name TEXT NOT NULL,
        value TEXT NOT NULL,
        PRIMARY KEY (resource_type, resource_name, name)
    ) WITHOUT ROWID;
    """,
)
