"""A catalog whose data directory nobody serves, looked at without changing it."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

from kbroker.catalog.sqlite import facts, journal
from kbroker.catalog.sqlite.file_names import CATALOG, OFFSET_JOURNALS, SHARE_JOURNALS, TRANSACTION_JOURNALS
from kbroker.catalog.sqlite.stored import OFFSETS_APPLIED, SHARES_APPLIED, TRANSACTIONS_APPLIED
from kbroker.storage.files import Files


class Inspected(NamedTuple):
    topics: dict[str, tuple[bytes, int]]
    """Their ids and numbers of partitions, by name."""
    problem: str | None
    """What SQLite says against the database."""


def inspect(directory: Path) -> Inspected:
    try:
        with closing(_open(directory)) as connection:
            rows = connection.execute("SELECT name, topic_id, partitions FROM topics")
            topics = {name: (topic_id, partitions) for name, topic_id, partitions in rows}
            (answer,) = connection.execute("PRAGMA integrity_check").fetchone()
    except sqlite3.Error as error:
        return Inspected({}, str(error))
    return Inspected(topics, None if answer == "ok" else str(answer))


def journal_problems(directory: Path) -> list[tuple[str, str]]:
    """Files and problems: changes that were acknowledged and are neither in the database nor in a journal."""
    if not (directory / CATALOG).exists():
        return []
    found: list[tuple[str, str]] = []
    for names, fact in (
        (OFFSET_JOURNALS, OFFSETS_APPLIED),
        (TRANSACTION_JOURNALS, TRANSACTIONS_APPLIED),
        (SHARE_JOURNALS, SHARES_APPLIED),
    ):
        try:
            with closing(_open(directory)) as connection:
                applied = facts.number(connection, fact)
        except sqlite3.Error:
            return found  # `inspect` tells of it
        found += journal.check(Files(), directory, names, applied)
    return found


def _open(directory: Path) -> sqlite3.Connection:
    return sqlite3.connect(f"file:{directory / CATALOG}?mode=ro", uri=True)
