"""Whether a coordinator has anything to load: where it has not, its code is loaded with its first request."""

from __future__ import annotations

from kbroker.catalog.database import Database

JOURNALS = ("offsets-0.journal", "offsets-1.journal")
FOLDED = "offset.journal.folded"
"""The fact that says up to which entry of the offset journal the catalog has the offsets."""


def groups_are_stored(database: Database) -> bool:
    """Also when none are left: the numbers in the offset journal go on from the last one."""
    journals = [] if database.directory is None else [database.directory / name for name in JOURNALS]
    return any(path.exists() and path.stat().st_size for path in journals) or _any(
        database,
        "SELECT 1 FROM groups",
        "SELECT 1 FROM group_offsets",
        "SELECT 1 FROM group_pending_offsets",
        f"SELECT 1 FROM facts WHERE name = '{FOLDED}'",
    )


def transactions_are_stored(database: Database) -> bool:
    return _any(database, "SELECT 1 FROM transactions")


def _any(database: Database, *queries: str) -> bool:
    exists = " OR ".join(f"EXISTS ({query})" for query in queries)
    return bool(database.read(lambda connection: connection.execute(f"SELECT {exists}").fetchone()[0]))
