"""The latest offset of every key in the dirty part of a log, in memory that is bounded beforehand.

Of a key only its 128-bit hash is kept: an open-addressed table of 24 bytes per slot, with double hashing. It
takes no more entries than the load factor allows; who fills it compacts up to there, and the rest next time.
"""

from __future__ import annotations

from array import array
from math import isqrt
from typing import TYPE_CHECKING, Final

import mmh3

if TYPE_CHECKING:
    from typing_extensions import Buffer

BYTES_PER_SLOT: Final = 24
_FEWEST_SLOTS: Final = 5

_hash = mmh3.mmh3_x64_128_utupledigest


class OffsetMap:
    def __init__(self, memory_bytes: int, load_factor: float = 0.9, records: int | None = None) -> None:
        """`records`: there will be no more than these, so that a small log takes little memory."""
        slots = memory_bytes // BYTES_PER_SLOT
        if records is not None:
            slots = min(slots, int(records / load_factor) + _FEWEST_SLOTS)
        # A prime, so that every step leads through the whole table.
        self._slots = _prime_at_or_below(max(slots, _FEWEST_SLOTS))
        self.capacity = min(max(int(self._slots * load_factor), 1), self._slots - 1)
        self.size = 0
        self.latest_offset = -1  # every record up to here is in the map
        self._high = array("Q", (0,)) * self._slots
        self._low = array("Q", (0,)) * self._slots
        self._next_offsets = array("Q", (0,)) * self._slots  # offset + 1; 0: the slot is free

    def put(self, key: Buffer, offset: int) -> None:
        """Only while the size is below the capacity."""
        high, low = _hash(key)
        highs, lows, next_offsets, slots = self._high, self._low, self._next_offsets, self._slots
        slot = high % slots
        step = 0
        while next_offsets[slot]:
            if highs[slot] == high and lows[slot] == low:
                next_offsets[slot] = offset + 1
                return
            if not step:
                step = 1 + low % (slots - 1)
            slot = (slot + step) % slots
        highs[slot] = high
        lows[slot] = low
        next_offsets[slot] = offset + 1
        self.size += 1

    def get(self, key: Buffer) -> int:
        """The latest offset of a key; -1: it is not in the map."""
        high, low = _hash(key)
        highs, lows, next_offsets, slots = self._high, self._low, self._next_offsets, self._slots
        slot = high % slots
        step = 0
        while (next_offset := next_offsets[slot]) and (highs[slot] != high or lows[slot] != low):
            if not step:
                step = 1 + low % (slots - 1)
            slot = (slot + step) % slots
        return next_offset - 1


def _prime_at_or_below(number: int) -> int:
    while any(number % divisor == 0 for divisor in range(2, isqrt(number) + 1)):
        number -= 1
    return number
