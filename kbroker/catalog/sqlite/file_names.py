"""The files of this catalog in a data directory."""

from __future__ import annotations

from collections.abc import Sequence

CATALOG = "catalog.sqlite"
OFFSET_JOURNALS = ("offsets-0.journal", "offsets-1.journal")
TRANSACTION_JOURNALS = ("transactions-0.journal", "transactions-1.journal")
SHARE_JOURNALS = ("shares-0.journal", "shares-1.journal")


def last_name(journals: Sequence[str]) -> str:
    """Of the file with the number of a journal's last entry: offsets.last for offsets-0.journal."""
    return journals[0].removesuffix(".journal").rstrip("0123456789-") + ".last"


def all_names() -> list[str]:
    """Those that belong together, whether or not each of them is there."""
    return [CATALOG, f"{CATALOG}-wal", f"{CATALOG}-shm", *journal_names()]


def journal_names() -> list[str]:
    names: list[str] = []
    for journals in (OFFSET_JOURNALS, TRANSACTION_JOURNALS, SHARE_JOURNALS):
        names += [*journals, last_name(journals)]
    return names
