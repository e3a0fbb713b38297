"""Points in time as users write them, and as they read them: milliseconds since 1970 inside."""

from __future__ import annotations

import argparse
import re
import time
from datetime import UTC, datetime

_SECONDS = {"ms": 0.001, "s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}
_AGO = re.compile(r"-?(\d+)(ms|[smhdw])")

HELP = "ISO 8601 (2026-03-01T12:00, local unless it says Z or +01:00), 2h (ago), or milliseconds since 1970"


def timestamp_ms(text: str) -> int:
    """A point in time; an argparse type."""
    if text.isdecimal():
        return int(text)
    if text == "now":
        return time.time_ns() // 1_000_000
    if match := _AGO.fullmatch(text):
        return int((time.time() - int(match[1]) * _SECONDS[match[2]]) * 1000)
    try:
        return int(datetime.fromisoformat(text).timestamp() * 1000)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is no point in time: write {HELP}") from None


def duration_ms(text: str) -> int:
    """A length of time such as 10s or 5m; an argparse type."""
    match = _AGO.fullmatch(text)
    if match is None or text.startswith("-"):
        raise argparse.ArgumentTypeError(f"{text!r} is no duration: write 500ms, 10s, 5m or 1h")
    return int(int(match[1]) * _SECONDS[match[2]] * 1000)


def iso(timestamp: int) -> str:
    """UTC with milliseconds; '-' where there is none."""
    if timestamp < 0:
        return "-"
    try:
        when = datetime.fromtimestamp(timestamp / 1000, UTC)
    except (OverflowError, ValueError, OSError):
        return str(timestamp)
    return when.strftime("%Y-%m-%dT%H:%M:%S.") + f"{timestamp % 1000:03d}Z"
