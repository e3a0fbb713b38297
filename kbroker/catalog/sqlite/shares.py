"""States of share partitions as rows: the store of share groups.

Where it may, a change is journaled (see journaled_table), which outlives the process as well. A second later,
or with the next write that is not journaled, all changes of a share partition are merged into its row. Those
of one that has no row any more are dropped.
"""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterable, Mapping, Sequence

from kbroker.catalog.errors import CatalogError, CatalogFull
from kbroker.catalog.sqlite.database import Database
from kbroker.catalog.sqlite.journal import Journal
from kbroker.catalog.sqlite.journaled_table import JournaledTable
from kbroker.catalog.sqlite.later_applying import LaterApplying
from kbroker.catalog.sqlite.share_entries import (
    Changes,
    Partition,
    StoredRuns,
    add,
    decode_changes,
    encode_changes,
    encode_runs,
)
from kbroker.catalog.sqlite.stored import SHARES_APPLIED
from kbroker.coordinators.shares.state import ShareState, ShareStateChange, merged
from kbroker.coordinators.shares.store import ShareKey
from kbroker.pending import Pending
from kbroker.scheduler import Scheduler

_ONE = "group_id = ? AND topic_id = ? AND partition = ?"
_DELETE_ONE = f"DELETE FROM share_states WHERE {_ONE}"
_ORPHANS = "SELECT topic_id FROM share_states EXCEPT SELECT topic_id FROM topics"

Gathered = dict[Partition, list[ShareStateChange]]


class SqliteShareStateStore:
    def __init__(
        self, database: Database, journal: Journal, scheduler: Scheduler | None, *, stored: bool
    ) -> None:
        """`journal`: where changes may stand that the database lacks. `scheduler`: for putting more there;
        without it every change is a transaction of the database. `stored`: there may be something to load.
        """
        self._database = database
        self._table: JournaledTable[Gathered] = JournaledTable(database, journal, SHARES_APPLIED, _merge)
        self._applying = None if scheduler is None else LaterApplying(self._table, scheduler)
        self._stored = stored

    def load(self) -> dict[ShareKey, ShareState]:
        if not self._stored:
            return {}
        unapplied = self._table.recover("states of share partitions", decode_changes, _gather)
        if self._applying is not None:
            self._applying.apply_rest()
        with contextlib.suppress(CatalogFull):  # the next start may have room
            self._delete_orphans()
        states = self._database.read(_load)
        for groups in unapplied:
            for key, changes in _by_key(groups):
                if key in states:
                    states[key] = merged(states[key], changes)
        return states

    def put(self, states: Mapping[ShareKey, ShareState | None]) -> Pending[None]:
        gone = [key for key, state in states.items() if state is None]
        kept = [
            (*key, state.start_offset, encode_runs(state.runs))
            for key, state in states.items()
            if state is not None
        ]

        def write(connection: sqlite3.Connection) -> None:
            connection.executemany(_DELETE_ONE, gone)
            connection.executemany("INSERT OR REPLACE INTO share_states VALUES (?, ?, ?, ?, ?)", kept)

        return self._table.write(write)

    def write(self, changes: Mapping[ShareKey, ShareStateChange]) -> Pending[None]:
        if self._applying is None or not self._table.journals:
            groups: Changes = {}
            _add(groups, changes)
            return self._table.write(lambda connection: _merge(connection, groups))
        try:
            gathered = self._table.journal(encode_changes(changes))
        except CatalogError as error:
            return Pending.failed(error)
        _add(gathered, changes)
        self._applying.journaled()
        return Pending.resolved(None)

    def delete_group(self, group_id: str) -> Pending[None]:
        return self._delete("group_id", group_id)

    def delete_topic(self, topic_id: bytes) -> Pending[None]:
        return self._delete("topic_id", topic_id)

    def close(self) -> None:
        if self._applying is not None:
            self._applying.close()
            self._applying = None
        self._table.apply().then(lambda _: self._table.close())

    def _delete(self, column: str, value: str | bytes) -> Pending[None]:
        def write(connection: sqlite3.Connection) -> None:
            connection.execute(f"DELETE FROM share_states WHERE {column} = ?", (value,))

        return self._table.write(write)

    def _delete_orphans(self) -> None:
        """States of topics that were deleted just before a crash."""
        orphans = self._database.read(lambda connection: connection.execute(_ORPHANS).fetchall())
        for (topic_id,) in orphans:
            self.delete_topic(topic_id).result()


def _add(gathered: Changes, changes: Mapping[ShareKey, ShareStateChange]) -> None:
    for key, change in changes.items():
        add(gathered, key.group_id, key[1:], (change,))


def _gather(gathered: Changes, groups: Mapping[str, Gathered]) -> None:
    for key, changes in _by_key(groups):
        add(gathered, key.group_id, key[1:], changes)


def _by_key(groups: Mapping[str, Gathered]) -> Iterable[tuple[ShareKey, Sequence[ShareStateChange]]]:
    for group_id, partitions in groups.items():
        for partition, changes in partitions.items():
            yield ShareKey(group_id, *partition), changes


def _merge(connection: sqlite3.Connection, groups: Mapping[str, Gathered]) -> None:
    for key, changes in _by_key(groups):
        query = f"SELECT start_offset, runs FROM share_states WHERE {_ONE}"
        found = connection.execute(query, key).fetchone()
        if found is not None:
            start_offset, runs = merged(ShareState(found[0], StoredRuns(found[1])), changes)
            row = (start_offset, encode_runs(runs), *key)
            connection.execute(f"UPDATE share_states SET start_offset = ?, runs = ? WHERE {_ONE}", row)


def _load(connection: sqlite3.Connection) -> dict[ShareKey, ShareState]:
    """Those of topics that exist."""
    columns = "group_id, topic_id, partition, start_offset, runs"
    rows = connection.execute(f"SELECT {columns} FROM share_states JOIN topics USING (topic_id)")
    return {ShareKey(*key): ShareState(start_offset, StoredRuns(runs)) for *key, start_offset, runs in rows}
