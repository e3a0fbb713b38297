"""Who holds bytes of the budget and does not get on with them, while others wait.

A peer that announced a large frame, or asked for a large answer, must move a minimum of bytes in every
period; as long as nobody waits it may be as slow as it likes.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kbroker.network.budget import Budget
    from kbroker.network.connections import ClientConnection

PERIOD_MS = 5_000
MIN_BYTES = 64 * 1024


class StalledPeers:
    def __init__(self, budget: Budget) -> None:
        self._budget = budget
        self._seen: dict[ClientConnection, tuple[int, int]] = {}  # when a period began, and the progress then

    def find(self, connections: Iterable[ClientConnection], now_ms: int) -> list[ClientConnection]:
        """To be asked about once a second."""
        if not self._budget.contended:
            self._seen.clear()
            return []
        seen: dict[ClientConnection, tuple[int, int]] = {}
        stalled: list[ClientConnection] = []
        for connection in connections:
            progress = connection.progress
            if progress is None:
                continue
            began_ms, progress_then = self._seen.get(connection, (now_ms, progress))
            if not 0 <= progress - progress_then < MIN_BYTES:  # less than before: it is another frame
                began_ms, progress_then = now_ms, progress
            if now_ms - began_ms > PERIOD_MS:
                stalled.append(connection)
            else:
                seen[connection] = (began_ms, progress_then)
        self._seen = seen
        return stalled
