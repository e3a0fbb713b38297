"""Groups, their members and their offsets, as rows: the group coordinator's store.

States are kept as JSON; bytes in them as {"base64": …}. Offsets may be journaled first (see journaled_table).
"""

from __future__ import annotations

import base64
import json
import sqlite3
from collections.abc import Collection, Mapping
from typing import Any

from kbroker.catalog.errors import CatalogError
from kbroker.catalog.sqlite import offset_entries
from kbroker.catalog.sqlite.database import Database
from kbroker.catalog.sqlite.journal import Journal
from kbroker.catalog.sqlite.journaled_table import JournaledTable
from kbroker.catalog.sqlite.stored import OFFSETS_APPLIED
from kbroker.coordinators.groups.store import (
    CommittedOffset,
    Offsets,
    State,
    StoredGroup,
    StoredGroups,
    TopicPartition,
)
from kbroker.pending import Pending

_OFFSET = (
    "committed_offset, leader_epoch, metadata, commit_timestamp_ms, expire_timestamp_ms, topic_id, sequence"
)


class SqliteGroupStore:
    def __init__(self, database: Database, journal: Journal, *, journals: bool, stored: bool) -> None:
        """`journal`: where offsets may stand that the database lacks. `journals`: put more there.

        `stored`: there may be something to load.
        """
        self._database = database
        self._offsets: JournaledTable[dict[TopicPartition, CommittedOffset]] = JournaledTable(
            database, journal, OFFSETS_APPLIED, _insert
        )
        self.journals = journals
        self._stored = stored

    def load(self) -> StoredGroups:
        if not self._stored:
            return StoredGroups()
        unapplied = self._offsets.recover("offsets", offset_entries.decode)
        stored = self._database.read(_load)
        for groups in unapplied:
            for group_id, offsets in groups.items():
                stored.offsets.setdefault(group_id, {}).update(offsets)
        return stored

    def journal_offsets(self, groups: Mapping[str, Offsets]) -> None:
        try:
            gathered = self._offsets.journal(offset_entries.encode(groups))
        except CatalogError:
            self.journals = self._offsets.journals
            raise
        for group_id, offsets in groups.items():
            gathered.setdefault(group_id, {}).update(offsets)

    def apply_journal(self) -> Pending[None]:
        return self._offsets.apply()

    def close(self) -> None:
        self._offsets.close()

    def save_group(
        self, group_id: str, type: str, state: State, members: Mapping[str, State | None]
    ) -> Pending[None]:
        encoded = _encode(state)
        gone = [(group_id, member_id) for member_id, member in members.items() if member is None]
        kept = [
            (group_id, member_id, _encode(member))
            for member_id, member in members.items()
            if member is not None
        ]

        def write(connection: sqlite3.Connection) -> None:
            connection.execute(
                "DELETE FROM group_members WHERE group_id = ? "
                "AND EXISTS (SELECT 1 FROM groups WHERE group_id = ? AND type != ?)",
                (group_id, group_id, type),
            )
            connection.execute("INSERT OR REPLACE INTO groups VALUES (?, ?, ?)", (group_id, type, encoded))
            connection.executemany("DELETE FROM group_members WHERE group_id = ? AND member_id = ?", gone)
            connection.executemany("INSERT OR REPLACE INTO group_members VALUES (?, ?, ?)", kept)

        return self._database.write(write)

    def delete_group(self, group_id: str) -> Pending[None]:
        def write(connection: sqlite3.Connection) -> None:
            for table in ("groups", "group_members", "group_offsets", "group_pending_offsets"):
                connection.execute(f"DELETE FROM {table} WHERE group_id = ?", (group_id,))

        return self._offsets.write(write)

    def commit_offsets(self, groups: Mapping[str, Offsets]) -> Pending[None]:
        return self._offsets.write(lambda connection: _insert(connection, groups))

    def delete_offsets(self, group_id: str, partitions: Collection[TopicPartition]) -> Pending[None]:
        rows = [(group_id, *partition) for partition in partitions]

        def write(connection: sqlite3.Connection) -> None:
            for table in ("group_offsets", "group_pending_offsets"):
                connection.executemany(
                    f"DELETE FROM {table} WHERE group_id = ? AND topic = ? AND partition = ?", rows
                )

        return self._offsets.write(write)

    def add_pending_offsets(self, producer_id: int, group_id: str, offsets: Offsets) -> Pending[None]:
        rows = [(producer_id, group_id, *partition, *committed) for partition, committed in offsets.items()]

        def write(connection: sqlite3.Connection) -> None:
            connection.executemany(
                "INSERT OR REPLACE INTO group_pending_offsets VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", rows
            )

        return self._offsets.write(write)

    def end_transaction(self, producer_id: int, *, commit: bool) -> Pending[None]:
        def write(connection: sqlite3.Connection) -> None:
            if commit:
                connection.execute(
                    f"""
                    INSERT OR REPLACE INTO group_offsets
                    SELECT group_id, topic, partition, {_OFFSET} FROM group_pending_offsets AS pending
                    WHERE producer_id = ? AND NOT EXISTS (
                        SELECT 1 FROM group_offsets AS committed
                        WHERE committed.group_id = pending.group_id AND committed.topic = pending.topic
                        AND committed.partition = pending.partition AND committed.sequence > pending.sequence
                    )
                    """,
                    (producer_id,),
                )
            connection.execute("DELETE FROM group_pending_offsets WHERE producer_id = ?", (producer_id,))

        return self._offsets.write(write)


def _insert(connection: sqlite3.Connection, groups: Mapping[str, Offsets]) -> None:
    rows = (
        (group_id, *partition, *committed)
        for group_id, offsets in groups.items()
        for partition, committed in offsets.items()
    )
    connection.executemany("INSERT OR REPLACE INTO group_offsets VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", rows)


def _load(connection: sqlite3.Connection) -> StoredGroups:
    groups = {
        group_id: StoredGroup(group_id, type, _decode(state))
        for group_id, type, state in connection.execute("SELECT group_id, type, state FROM groups")
    }
    for group_id, member_id, state in connection.execute(
        "SELECT group_id, member_id, state FROM group_members"
    ):
        if group_id in groups:
            groups[group_id].members[member_id] = _decode(state)
    stored = StoredGroups(groups=list(groups.values()))
    query = f"SELECT group_id, topic, partition, {_OFFSET} FROM group_offsets"
    for group_id, topic, partition, *committed in connection.execute(query):
        offsets = stored.offsets.setdefault(group_id, {})
        offsets[TopicPartition(topic, partition)] = CommittedOffset(*committed)
    query = f"SELECT producer_id, group_id, topic, partition, {_OFFSET} FROM group_pending_offsets"
    for producer_id, group_id, topic, partition, *committed in connection.execute(query):
        offsets = stored.pending_offsets.setdefault(producer_id, {}).setdefault(group_id, {})
        offsets[TopicPartition(topic, partition)] = CommittedOffset(*committed)
    return stored


def _encode(state: State) -> str:
    return json.dumps(state, default=_encode_bytes, separators=(",", ":"))


def _encode_bytes(value: object) -> dict[str, str]:
    if not isinstance(value, bytes):
        raise TypeError(f"a group's state cannot hold {type(value).__name__}")
    return {"base64": base64.b64encode(value).decode()}


def _decode(text: str) -> State:
    state: State = json.loads(text, object_hook=_decode_bytes)
    return state


def _decode_bytes(value: dict[str, Any]) -> Any:
    return base64.b64decode(value["base64"]) if value.keys() == {"base64"} else value
