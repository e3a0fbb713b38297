"""How many producer ids the logs of a directory remember together: each takes some 450 bytes.

Whoever writes with ever new producer ids makes the logs forget the oldest ones sooner than their expiration.
A forgotten producer may go on: any sequence number is taken from it, as after an expiration, only a batch
that it sends again is not recognised.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import Any

from kbroker.storage.partition.abstract_log import AbstractLog

logger = logging.getLogger("kbroker.storage")

CHECK_INTERVAL_MS = 1000
_KEPT = 0.9  # of the limit, so that not every look forgets a few


def limit_producers(logs: Iterable[AbstractLog[Any]], limit: int) -> None:
    """Let the logs with the most producers forget their oldest, if all have more than that together."""
    counts = [(log.producer_count, log) for log in logs]
    excess = sum(count for count, _ in counts) - limit
    if excess <= 0:
        return
    excess = sum(count for count, _ in counts) - int(limit * _KEPT)
    logger.warning("more than %d producer ids are remembered: forgetting the %d oldest", limit, excess)
    for count, log in sorted(counts, key=lambda each: each[0], reverse=True):
        if excess <= 0:
            return
        log.forget_oldest_producers(min(count, excess))
        excess -= count - log.producer_count
