"""What can happen to a record of a traced topic. Whoever lets it happen tells the log's LogTrace."""

from __future__ import annotations

from typing import Final

RECEIVED: Final = "received"
STORED: Final = "stored"
FETCHED: Final = "fetched"
ACKNOWLEDGED: Final = "acknowledged"
RELEASED: Final = "released"
REJECTED: Final = "rejected"
LOCK_RUN_OUT: Final = "lock-run-out"
DEAD_LETTERED: Final = "dead-lettered"

EVENTS: Final = (
    RECEIVED, STORED, FETCHED, ACKNOWLEDGED, RELEASED, REJECTED, LOCK_RUN_OUT, DEAD_LETTERED,
)  # fmt: skip
"""Their places here are what the ring stores: new ones come last."""
FAILURES: Final = frozenset((REJECTED, LOCK_RUN_OUT, DEAD_LETTERED))
