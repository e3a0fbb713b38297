"""Lengths of time as Spark writes them: "10 seconds", "1 hour 30 minutes"."""

from __future__ import annotations

import re

_UNITS = {
    "millisecond": 1,
    "second": 1000,
    "minute": 60_000,
    "hour": 3_600_000,
    "day": 86_400_000,
    "week": 604_800_000,
}
_PART = re.compile(rf"\s*(\d+)\s*({'|'.join(_UNITS)})s?\s*", re.IGNORECASE)


def milliseconds(text: str) -> int:
    """Raises ValueError for what is no length of time."""
    total, position = 0, 0
    while position < len(text):
        part = _PART.match(text, position)
        if part is None:
            break
        total += int(part[1]) * _UNITS[part[2].lower()]
        position = part.end()
    if position == 0 or position < len(text):
        raise ValueError(f"a length of time such as '10 seconds', not {text!r}")
    return total
