"""Failed logins by address: how long the next failure of an address waits for its answer.

The first failures wait for connection.failed.authentication.delay.ms, as in Kafka. From then on each doubles
the wait, up to a limit, until the address has been quiet for a minute. A right password never waits.
"""

from __future__ import annotations

_FREE = 10  # people mistype, and clients try again and again
_LEAST_MS = 50  # what is doubled, where the first failures do not wait at all
_QUIET_MS = 60_000
_MOST_ADDRESSES = 10_000
_TOLD = 10  # lines in the log, of an address that goes on


class FailedLogins:
    def __init__(self) -> None:
        self._failures: dict[str, tuple[int, int]] = {}  # how many, and when the last one was; oldest first

    def add(self, host: str, now_ms: int, delay_ms: int, most_ms: int) -> tuple[int, bool]:
        """One more: how long it waits; and whether the log is to tell of it."""
        count, last_ms = self._failures.pop(host, (0, now_ms))
        if now_ms - last_ms >= _QUIET_MS:
            count = 0
        count += 1
        self._failures[host] = (count, now_ms)
        if len(self._failures) > _MOST_ADDRESSES:
            del self._failures[next(iter(self._failures))]
        waits_ms = delay_ms
        if count > _FREE:
            waits_ms = max(delay_ms, min(max(delay_ms, _LEAST_MS) << min(count - _FREE, 20), most_ms))
        return waits_ms, count <= _TOLD or count % 1000 == 0
