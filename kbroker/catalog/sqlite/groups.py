"""Groups, their members and their offsets, as rows: the group coordinator's store.

States are kept as JSON; bytes in them as {"base64": …}.

Noted offsets stand in the journal and are folded into the table later, or by the next write that has to do
with offsets, in its transaction and before it. `facts` remembers up to which entry of the journal the table
has them, so a fold that failed, or was cut short by a crash, is done again, and none is done twice.
"""

from __future__ import annotations

import base64
import json
import logging
import sqlite3
from collections.abc import Callable, Collection, Mapping
from typing import Any, NamedTuple

from kbroker.catalog.errors import CatalogError, CatalogFull
from kbroker.catalog.sqlite import facts, noted_offsets
from kbroker.catalog.sqlite.database import Database
from kbroker.catalog.sqlite.journal import Journal
from kbroker.catalog.sqlite.stored import OFFSETS_FOLDED
from kbroker.coordinators.groups.store import (
    CommittedOffset,
    Offsets,
    State,
    StoredGroup,
    StoredGroups,
    TopicPartition,
)
from kbroker.pending import Pending

logger = logging.getLogger("kbroker.catalog")

_OFFSET = (
    "committed_offset, leader_epoch, metadata, commit_timestamp_ms, expire_timestamp_ms, topic_id, sequence"
)


class _Noted(NamedTuple):
    """Offsets of the journal, up to the entry of this number."""

    sequence: int
    groups: Mapping[str, Offsets]


class SqliteGroupStore:
    def __init__(
        self,
        database: Database,
        journal: Journal | None = None,
        *,
        notes: bool = True,
        stored: bool = True,
    ) -> None:
        """`journal`: where offsets may stand that the database lacks. `notes`: put more there.

        `stored`: there may be something to load.
        """
        self._database = database
        self._journal = journal
        self.notes = notes and journal is not None
        self._stored = stored
        self._noted: dict[str, dict[TopicPartition, CommittedOffset]] = {}  # the last of each partition
        self._unfolded: list[_Noted] = []  # on their way to the table, or to be tried again

    def load(self) -> StoredGroups:
        if not self._stored:
            return StoredGroups()
        if self._journal is not None:
            folded = self._database.read(lambda connection: facts.number(connection, OFFSETS_FOLDED))
            self._unfolded += [
                _Noted(sequence, noted_offsets.decode(payload))
                for sequence, payload in self._journal.read(folded)
            ]
            try:
                self.fold().result()
                self._journal.forget(self._journal.sequence)
            except CatalogFull as error:
                logger.warning("offsets stay in their journal until there is room: %s", error)
        stored = self._database.read(_load)
        for _, groups in self._unfolded:
            for group_id, offsets in groups.items():
                stored.offsets.setdefault(group_id, {}).update(offsets)
        return stored

    def note_offsets(self, groups: Mapping[str, Offsets]) -> None:
        assert self._journal is not None
        try:
            self._journal.append(noted_offsets.encode(groups))
        except CatalogError:
            self.notes = not self._journal.broken
            raise
        for group_id, offsets in groups.items():
            self._noted.setdefault(group_id, {}).update(offsets)

    def fold(self) -> Pending[None]:
        return self._write(lambda connection: None)

    def close(self) -> None:
        if self._journal is not None:
            self._journal.close()

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

        return self._write(write)

    def commit_offsets(self, groups: Mapping[str, Offsets]) -> Pending[None]:
        return self._write(lambda connection: _insert(connection, groups))

    def delete_offsets(self, group_id: str, partitions: Collection[TopicPartition]) -> Pending[None]:
        rows = [(group_id, *partition) for partition in partitions]

        def write(connection: sqlite3.Connection) -> None:
            for table in ("group_offsets", "group_pending_offsets"):
                connection.executemany(
                    f"DELETE FROM {table} WHERE group_id = ? AND topic = ? AND partition = ?", rows
                )

        return self._write(write)

    def add_pending_offsets(self, producer_id: int, group_id: str, offsets: Offsets) -> Pending[None]:
        rows = [(producer_id, group_id, *partition, *committed) for partition, committed in offsets.items()]

        def write(connection: sqlite3.Connection) -> None:
            connection.executemany(
                "INSERT OR REPLACE INTO group_pending_offsets VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", rows
            )

        return self._write(write)

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

        return self._write(write)

    def _write(self, function: Callable[[sqlite3.Connection], None]) -> Pending[None]:
        """A write that comes after everything noted so far, which it takes along."""
        journal = self._journal
        if journal is not None and self._noted:
            self._unfolded.append(_Noted(journal.sequence, self._noted))
            self._noted = {}
            journal.turn()
        if not self._unfolded:
            return self._database.write(function)
        entries = tuple(self._unfolded)

        def write(connection: sqlite3.Connection) -> None:
            _fold(connection, entries)
            function(connection)

        written = self._database.write(write)
        written.then(lambda done: self._forget(entries[-1].sequence, done))
        return written

    def _forget(self, sequence: int, done: Pending[None]) -> None:
        try:
            done.result()
        except Exception:
            return  # the writer hears of it; here it stays unfolded, for the next write
        self._unfolded = [entry for entry in self._unfolded if entry.sequence > sequence]
        if self._journal is not None:
            self._journal.forget(sequence)


def _insert(connection: sqlite3.Connection, groups: Mapping[str, Offsets]) -> None:
    rows = (
        (group_id, *partition, *committed)
        for group_id, offsets in groups.items()
        for partition, committed in offsets.items()
    )
    connection.executemany("INSERT OR REPLACE INTO group_offsets VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", rows)


def _fold(connection: sqlite3.Connection, entries: Collection[_Noted]) -> None:
    folded = facts.number(connection, OFFSETS_FOLDED)
    for sequence, groups in entries:
        if sequence > folded:
            _insert(connection, groups)
            facts.put(connection, OFFSETS_FOLDED, str(sequence))


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
