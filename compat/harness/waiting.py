"""Wait for a condition, never for a time."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def eventually(question: Callable[[], T], answer: Callable[[T], bool] = bool, seconds: float = 20) -> T:
    """Ask until the answer is right; Apache Kafka applies metadata and configs a moment after it says so."""
    deadline = time.monotonic() + seconds
    while not answer(value := question()):
        if time.monotonic() > deadline:
            raise AssertionError(f"still {value!r} after {seconds:g} s")
        time.sleep(0.02)
    return value
