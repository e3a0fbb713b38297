"""Requests that may come twice: what was answered the first time, by the key that the client gave it.

A key is remembered for a while after its first request, and as many as there is room for; the oldest go
first. While that request is under way, its repetitions wait for its answer. One that failed as a whole, so
that nothing was done, is forgotten: it may be tried again. All of this is in memory: over a restart an
origin's sequence helps (`origins.py`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from kbroker.pending import Pending

if TYPE_CHECKING:
    from kbroker.network.budget import Budget

_MOST: Final = 20_000
_MOST_BYTES: Final = 16 * 1024 * 1024
_ENTRY_BYTES: Final = 600  # of Python's objects


class Repeated:
    """A request that came first with its key."""

    __slots__ = ("answer", "fingerprint", "since_ms", "size_bytes")

    def __init__(self, fingerprint: bytes, since_ms: int) -> None:
        self.fingerprint = fingerprint
        """Of all that makes it the same request."""
        self.since_ms = since_ms
        self.size_bytes = 0
        self.answer: Pending[Any] = Pending()

    def followed(self) -> Pending[Any]:
        """Its answer, for one who may go away before it is there."""
        own: Pending[Any] = Pending()
        self.answer.then(own.follow)
        return own


class Repeats:
    def __init__(self, budget: Budget) -> None:
        self._budget = budget
        self._by_key: dict[tuple[str, str], Repeated] = {}  # by who asks, and their key; the oldest first
        self._bytes = 0

    def find(self, owner: str, key: str, now_ms: int, window_ms: int) -> Repeated | None:
        while self._by_key:
            oldest = next(iter(self._by_key))
            if now_ms - self._by_key[oldest].since_ms <= window_ms or not self._by_key[oldest].answer.done:
                break
            self._drop(oldest)
        return self._by_key.get((owner, key))

    def begin(self, owner: str, key: str, fingerprint: bytes, now_ms: int) -> Repeated:
        entry = self._by_key[owner, key] = Repeated(fingerprint, now_ms)
        return entry

    def succeeded(self, owner: str, key: str, answer: Any, size_bytes: int) -> None:
        entry = self._by_key[owner, key]
        entry.size_bytes = size_bytes + _ENTRY_BYTES
        self._bytes += entry.size_bytes
        self._budget.take(entry.size_bytes)
        entry.answer.resolve(answer)
        while len(self._by_key) > _MOST or self._bytes > _MOST_BYTES:
            done = next((each for each, entry in self._by_key.items() if entry.answer.done), None)
            if done is None:
                break
            self._drop(done)

    def failed(self, owner: str, key: str, error: Exception) -> None:
        """Nothing was done."""
        self._by_key.pop((owner, key)).answer.fail(error)

    def _drop(self, key: tuple[str, str]) -> None:
        entry = self._by_key.pop(key)
        self._bytes -= entry.size_bytes
        self._budget.give_back(entry.size_bytes)
