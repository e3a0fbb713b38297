"""A table whose changes may be journaled first and applied later.

What is journaled outlives the process. It is applied, all that has gathered in one transaction, by ``apply``;
and by every other write to the table, in its transaction and before it. A fact remembers up to which entry of
the journal the table has them: so what failed, or was cut short by a crash, is done again, and none twice.
"""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Callable, Mapping
from typing import Generic, NamedTuple, TypeVar

from kbroker.catalog.errors import CatalogFull
from kbroker.catalog.sqlite import facts
from kbroker.catalog.sqlite.database import Database
from kbroker.catalog.sqlite.journal import Journal
from kbroker.pending import Pending

logger = logging.getLogger("kbroker.catalog")

V = TypeVar("V")


class _Batch(NamedTuple, Generic[V]):
    """Changes of the journal, by their keys, up to the entry of this number."""

    sequence: int
    changes: Mapping[str, V]


class JournaledTable(Generic[V]):
    def __init__(
        self,
        database: Database,
        journal: Journal,
        fact: str,
        insert: Callable[[sqlite3.Connection, Mapping[str, V]], None],
    ) -> None:
        """`fact`: the name of the one that says what is applied. `insert` puts changes into the table."""
        self._database = database
        self._journal = journal
        self._fact = fact
        self._insert = insert
        self._gathered: dict[str, V] = {}
        self._unapplied: list[_Batch[V]] = []  # on their way to the table, or to be tried again

    @property
    def journals(self) -> bool:
        """Whether the journal takes more."""
        return not self._journal.broken

    @property
    def lags(self) -> bool:
        """Whether the journal has changes that the table may lack."""
        return bool(self._gathered or self._unapplied)

    def recover(
        self,
        what: str,
        decode: Callable[[bytes], Mapping[str, V]],
        gather: Callable[[dict[str, V], Mapping[str, V]], None] | None = None,
    ) -> list[Mapping[str, V]]:
        """At a start, apply what the journal holds. Returns what could not be, for want of room.

        `gather` adds changes to earlier ones: so all of them are put into the table at once.
        """
        applied = self._database.read(lambda connection: facts.number(connection, self._fact))
        entries = self._journal.read(applied)
        if gather is None:
            self._unapplied += [_Batch(sequence, decode(payload)) for sequence, payload in entries]
        elif entries:
            gathered: dict[str, V] = {}
            for _, payload in entries:
                gather(gathered, decode(payload))
            self._unapplied.append(_Batch(entries[-1].sequence, gathered))
        try:
            self.apply().result()
            self._journal.forget(self._journal.sequence)
        except CatalogFull as error:
            logger.warning("%s stay in their journal until there is room: %s", what, error)
        return [batch.changes for batch in self._unapplied]

    def journal(self, payload: bytes) -> dict[str, V]:
        """Journal a change; raises if it could not be. Returns where to add it, to those that gather."""
        self._journal.append(payload)
        return self._gathered

    def apply(self) -> Pending[None]:
        return self.write(lambda connection: None) if self.lags else Pending.resolved(None)

    def write(self, function: Callable[[sqlite3.Connection], None]) -> Pending[None]:
        """A write that comes after everything journaled so far, which it takes along."""
        if self._gathered:
            self._unapplied.append(_Batch(self._journal.sequence, self._gathered))
            self._gathered = {}
            self._journal.turn()
        if not self._unapplied:
            return self._database.write(function)
        batches = tuple(self._unapplied)

        def write(connection: sqlite3.Connection) -> None:
            applied = facts.number(connection, self._fact)
            for sequence, changes in batches:
                if sequence > applied:
                    self._insert(connection, changes)
                    facts.put(connection, self._fact, str(sequence))
            function(connection)

        written = self._database.write(write)
        written.then(lambda done: self._applied(batches[-1].sequence, done))
        return written

    def close(self) -> None:
        """All writes are done, and nothing more is journaled."""
        self._journal.close()

    def _applied(self, sequence: int, done: Pending[None]) -> None:
        if done.succeeded:
            self._unapplied = [batch for batch in self._unapplied if batch.sequence > sequence]
            self._journal.forget(sequence)
        # Else the writer hears of it, and the batches stay for the next write.
