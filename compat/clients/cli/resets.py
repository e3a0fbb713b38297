"""Ways to reset a group that reads a partition of 5 records, one after the other, and where it is then."""

from __future__ import annotations

RESETS = (
    (("--to-start",), 0),
    (("--to-end",), 5),
    (("--to-offset", "4"), 4),
    (("--to-offset", "400"), 5),
    (("--shift", "-2"), 3),
    (("--to-time", "2999-01-01"), 5),
    (("--to-time", "2001-01-01"), 0),
)
