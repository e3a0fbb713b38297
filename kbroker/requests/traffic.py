"""What goes through a broker's connections: plain numbers, counted where it happens, read at a scrape.

A request counts with its answer; the time it took is from when the last of it came until its answer was made.
What a long poll waited for others is not a part of that.
"""

from __future__ import annotations

import logging
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Mapping
from typing import Final

from kbroker.requests.apis import APIS, BY_KEY
from kbroker.requests.gate import head_of
from kbroker.times import BOUNDS, Times

logger = logging.getLogger("kbroker.slow")

HEAD_BYTES: Final = 80
"""Of a request, kept while it waits: enough to name it and its client."""


class ApiTraffic(Times):
    """Of one API."""

    __slots__ = ("errors", "received_bytes", "sent_bytes")

    def __init__(self) -> None:
        super().__init__()
        self.received_bytes = 0
        self.sent_bytes = 0
        self.errors: dict[int, int] = defaultdict(int)
        """How often it answered with each error code but 0."""

    def answered(self, seconds: float, received_bytes: int, sent_bytes: int) -> None:
        """One request. All of them pass here: as few steps as can be."""
        self.buckets[bisect_left(BOUNDS, seconds)] += 1
        self.seconds += seconds
        self.received_bytes += received_bytes
        self.sent_bytes += sent_bytes

    def answered_together(self, count: int, seconds: float, received_bytes: int, sent_bytes: int) -> None:
        self.add(seconds, count)
        self.received_bytes += received_bytes
        self.sent_bytes += sent_bytes


class ListenerTraffic:
    """Connections of one listener."""

    __slots__ = ("came", "refused", "went")

    def __init__(self) -> None:
        self.came = 0
        self.went = 0
        self.refused = 0
        """Of those that came: closed at once, for there were too many."""


class Traffic:
    def __init__(self, slow_ms: int) -> None:
        """``slow_ms``: requests that take longer are logged; -1: none is."""
        nothing = ApiTraffic()  # of what no request has: some are answered before they have a head
        self.by_key = [nothing] * 256
        """By the low byte of the API key, which no two APIs share."""
        for api in APIS:
            self.by_key[api.key] = ApiTraffic()
        self.listeners: dict[str, ListenerTraffic] = defaultdict(ListenerTraffic)
        self.http_requests: Counter[tuple[str, str, int]] = Counter()
        """By method, path of the endpoint and status."""
        self.http_times: dict[tuple[str, str], Times] = defaultdict(Times)
        """By method and path of the endpoint."""
        self.malformed = 0
        """Frames that could not be answered."""
        self.slow_seconds = slow_ms / 1000 if slow_ms >= 0 else float("inf")
        self.slow = 0

    def tell_slow(
        self,
        head: bytes | memoryview,
        who: Mapping[str, object],
        queued: float,
        executing: float,
        waiting: float,
        answering: float,
    ) -> None:
        """Log a request that took long, with where the time went. ``who``: fields of its connection."""
        self.slow += 1
        found = head_of(memoryview(head))
        name, fields = "a request", dict(who)
        if found is not None:
            name = f"{found.api.name} v{found.version} of {found.client_id!r}"
            fields |= {"api": found.api.name, "client": found.client_id}
        logger.warning(
            "slow: %s at %s took %d ms: %d ms until its turn, %d ms at work, %d ms waiting, %d ms answering",
            name,
            fields.get("peer"),
            round((queued + executing + waiting + answering) * 1000),
            round(queued * 1000),
            round(executing * 1000),
            round(waiting * 1000),
            round(answering * 1000),
            extra=fields,
        )

    def named(self) -> list[tuple[str, ApiTraffic]]:
        """The APIs that were used."""
        return [(api.name, found) for api in BY_KEY.values() if (found := self.by_key[api.key]).count]
