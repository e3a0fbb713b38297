"""Moments as clients write them: milliseconds since 1970, or ISO 8601 with its zone."""

from __future__ import annotations

from datetime import datetime

from kbroker.http.problems import Problem


def timestamp_of(text: str, name: str, *others: str) -> int:
    """In milliseconds. ``others``: what the parameter may be as well, for the message."""
    if text.isascii() and text.isdecimal() and len(text) <= 18:
        return int(text)
    try:
        moment = datetime.fromisoformat(text.replace(" ", "+"))  # what an unquoted + in a query becomes
    except ValueError:
        moment = None
    if moment is None or moment.tzinfo is None or moment.timestamp() < 0:
        known = ", ".join((*others, "milliseconds since 1970, or a time such as 2026-01-31T12:00:00Z"))
        raise Problem(400, f"{name} must be {known}, not {text[:50]!r}.")
    return int(moment.timestamp() * 1000)
