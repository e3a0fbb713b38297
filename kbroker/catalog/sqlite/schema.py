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
    """
    CREATE TABLE groups (group_id TEXT PRIMARY KEY, type TEXT NOT NULL, state TEXT NOT NULL) WITHOUT ROWID;

    -- for the group types that store their members one by one
    CREATE TABLE group_members (
        group_id TEXT NOT NULL,
        member_id TEXT NOT NULL,
        state TEXT NOT NULL,
        PRIMARY KEY (group_id, member_id)
    ) WITHOUT ROWID;

    CREATE TABLE group_offsets (
        group_id TEXT NOT NULL,
        topic TEXT NOT NULL,
        partition INTEGER NOT NULL,
        committed_offset INTEGER NOT NULL,
        leader_epoch INTEGER NOT NULL,
        metadata TEXT NOT NULL,
        commit_timestamp_ms INTEGER NOT NULL,
        expire_timestamp_ms INTEGER,
        topic_id BLOB NOT NULL,
        sequence INTEGER NOT NULL,
        PRIMARY KEY (group_id, topic, partition)
    ) WITHOUT ROWID;

    -- offsets of transactions that have not ended
    CREATE TABLE group_pending_offsets (
        producer_id INTEGER NOT NULL,
        group_id TEXT NOT NULL,
        topic TEXT NOT NULL,
        partition INTEGER NOT NULL,
        committed_offset INTEGER NOT NULL,
        leader_epoch INTEGER NOT NULL,
        metadata TEXT NOT NULL,
        commit_timestamp_ms INTEGER NOT NULL,
        expire_timestamp_ms INTEGER,
        topic_id BLOB NOT NULL,
        sequence INTEGER NOT NULL,
        PRIMARY KEY (producer_id, group_id, topic, partition)
    ) WITHOUT ROWID;
    """,
    """
    CREATE TABLE transactions (
        transactional_id TEXT PRIMARY KEY,
        producer_id INTEGER NOT NULL,
        producer_epoch INTEGER NOT NULL,
        timeout_ms INTEGER NOT NULL,
        last_update_ms INTEGER NOT NULL,
        state TEXT NOT NULL,
        -- JSON: pairs of topic and partition
        partitions TEXT NOT NULL,
        start_ms INTEGER NOT NULL,
        previous_producer_id INTEGER NOT NULL,
        next_producer_id INTEGER NOT NULL,
        last_producer_epoch INTEGER NOT NULL,
        transaction_version INTEGER NOT NULL
    ) WITHOUT ROWID;
    """,
    """
    -- small tables that parts of the broker keep: users, ACLs, tokens, quotas
    CREATE TABLE entries (
        "table" TEXT NOT NULL,
        key TEXT NOT NULL,
        value TEXT NOT NULL,
        PRIMARY KEY ("table", key)
    ) WITHOUT ROWID;
    """,
    """
    -- one row per share partition: a partition of a topic as a share group sees it
    CREATE TABLE share_states (
        group_id TEXT NOT NULL,
        topic_id BLOB NOT NULL,
        partition INTEGER NOT NULL,
        -- -1: not decided yet
        start_offset INTEGER NOT NULL,
        -- see share_entries.py
        runs BLOB NOT NULL,
        PRIMARY KEY (group_id, topic_id, partition)
    ) WITHOUT ROWID;
    """,
)
