"""What a peer may do that costs us work and brings it nothing: pings, settings, resets, empty frames, windows
that open by a byte. So much of it a second is allowed, and more to who gets something by it: gRPC's clients
send some with every call and every message, to keep their windows and to measure the way.
"""

from __future__ import annotations

from typing import Final

_A_SECOND: Final = 2000
_MOST: Final = 8000
_BYTES_OF_ONE: Final = 1024  # that are moved, for each further frame
_A_MESSAGE: Final = 5  # frames, for each message
_MOST_EARNED: Final = 20_000

FRAME: Final = 1
RESET: Final = 8


class Patience:
    """Of one connection."""

    __slots__ = ("_left", "_since_ms")

    def __init__(self, now_ms: int) -> None:
        self._left = float(_MOST)
        self._since_ms = now_ms

    def earn(self, moved_bytes: int) -> None:
        if self._left < _MOST_EARNED:
            self._left += moved_bytes / _BYTES_OF_ONE

    def earn_message(self) -> None:
        """One has come, or was taken, whole."""
        if self._left < _MOST_EARNED:
            self._left += _A_MESSAGE

    def spend(self, cost: int, now_ms: int) -> bool:
        """Whether there is some left."""
        passed_ms, self._since_ms = now_ms - self._since_ms, now_ms
        if passed_ms > 0 and self._left < _MOST:
            self._left = min(self._left + passed_ms * _A_SECOND / 1000, _MOST)
        self._left -= cost
        return self._left >= 0
