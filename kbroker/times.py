"""How long things took: counted in buckets where they happen, read when somebody looks."""

from __future__ import annotations

from bisect import bisect_left
from typing import Final

BOUNDS: Final = (
    0.0001,
    0.00025,
    0.0005,
    0.001,
    0.0025,
    0.005,
    0.01,
    0.025,
    0.05,
    0.1,
    0.25,
    0.5,
    1.0,
    2.5,
    5.0,
    10.0,
)
"""Of the buckets, in seconds: a fetch of what is there takes 0.1 ms, a fsync ten."""


class Times:
    """How long something took, again and again."""

    __slots__ = ("buckets", "seconds")

    def __init__(self) -> None:
        self.buckets = [0] * (len(BOUNDS) + 1)
        self.seconds = 0.0

    def add(self, seconds: float, count: int = 1) -> None:
        self.buckets[bisect_left(BOUNDS, seconds)] += count
        self.seconds += seconds * count

    @property
    def count(self) -> int:
        return sum(self.buckets)
