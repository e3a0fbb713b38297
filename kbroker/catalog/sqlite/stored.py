"""Whether a coordinator has anything to load: where it has not, its code is loaded with its first request."""

from __future__ import annotations

from kbroker.catalog.sqlite.database import Database
from kbroker.catalog.sqlite.file_names import OFFSET_JOURNALS, SHARE_JOURNALS, TRANSACTION_JOURNALS, last_name

OFFSETS_APPLIED = "offset.journal.folded"
"""The fact that says up to which entry of the offset journal the catalog has the offsets."""
TRANSACTIONS_APPLIED = "transaction.journal.folded"
"""The same of the journal of transactions."""
SHARES_APPLIED = "share.journal.folded"
"""The same of the journal of share partitions."""


def groups_are_stored(database: Database) -> bool:
    """Also when none are left: the numbers in the offset journal go on from the last one."""
    return _any_journaled(database, OFFSET_JOURNALS) or _any(
        database,
        "SELECT 1 FROM groups",
        "SELECT 1 FROM group_offsets",
        "SELECT 1 FROM group_pending_offsets",
        f"SELECT 1 FROM facts WHERE name = '{OFFSETS_APPLIED}'",
    )


def transactions_are_stored(database: Database) -> bool:
    """Also when none are left, for the numbers in their journal."""
    return _any_journaled(database, TRANSACTION_JOURNALS) or _any(
        database, "SELECT 1 FROM transactions", f"SELECT 1 FROM facts WHERE name = '{TRANSACTIONS_APPLIED}'"
    )


def shares_are_stored(database: Database) -> bool:
    """Also when none are left, for the numbers in their journal."""
    return _any_journaled(database, SHARE_JOURNALS) or _any(
        database, "SELECT 1 FROM share_states", f"SELECT 1 FROM facts WHERE name = '{SHARES_APPLIED}'"
    )


def _any_journaled(database: Database, journals: tuple[str, ...]) -> bool:
    paths = [database.directory / name for name in (*journals, last_name(journals))]
    return any(path.exists() and path.stat().st_size for path in paths)


def _any(database: Database, *queries: str) -> bool:
    exists = " OR ".join(f"EXISTS ({query})" for query in queries)
    return bool(database.read(lambda connection: connection.execute(f"SELECT {exists}").fetchone()[0]))
