"""What was measured, as tables."""

from __future__ import annotations

import statistics
from typing import Any, NamedTuple

from benchmarks.compare.report import short

Saved = dict[str, dict[str, Any]]
"""By name of a row: its kind, its samples, and when they were taken."""


class _Column(NamedTuple):
    title: str
    number: str


_COLUMNS = {
    "requests": (
        _Column("requests/s", "requests_per_s"),
        _Column("messages/s", "messages_per_s"),
        _Column("broker CPU µs/request", "cpu_us_per_request"),
        _Column("µs/message", "cpu_us_per_message"),
        _Column("answered MB/s", "answered_mb_per_s"),
    ),
    "start": (
        _Column("ready after s", "start_s"),
        _Column("CPU s", "start_cpu_s"),
        _Column("RssAnon MB", "rss_anon_mb"),
        _Column("RssFile MB", "rss_file_mb"),
    ),
    "first use": (
        _Column("answered after s", "first_answer_s"),
        _Column("the second after s", "second_answer_s"),
        _Column("more RssAnon MB", "more_rss_anon_mb"),
        _Column("more RssFile MB", "more_rss_file_mb"),
    ),
    "beside": (
        _Column("produce p50 ms", "produce_p50_ms"),
        _Column("p99 ms", "produce_p99_ms"),
        _Column("p99.9 ms", "produce_p999_ms"),
        _Column("cores of the broker", "cores"),
        _Column("RssAnon MB", "rss_anon_mb"),
    ),
}
_SPREAD_OF = {"requests": 2, "beside": 1}  # which column, where it is not the first
_FIRST = {
    "requests": "load",
    "start": "a broker",
    "first use": "a broker that nobody has asked",
    "beside": "load by HTTP",
}


def tables(saved: Saved) -> str:
    """Markdown, a table for each kind."""
    kinds = {row["kind"] for row in saved.values()}
    return "\n".join(table(kind, saved) for kind in _COLUMNS if kind in kinds)


def table(kind: str, saved: Saved) -> str:
    columns = _COLUMNS[kind]
    out = [_line([_FIRST[kind], *(column.title for column in columns), "spread"])]
    out.append("|---" * (len(columns) + 2) + "|")
    for name, row in saved.items():
        if row["kind"] == kind:
            cells = [short(median(row, column.number)) for column in columns]
            out.append(_line([name, *cells, _spread(row, columns[_SPREAD_OF.get(kind, 0)].number)]))
    return "\n".join(out) + "\n"


def median(row: dict[str, Any], number: str) -> float:
    return statistics.median(sample[number] for sample in row["samples"])


def _spread(row: dict[str, Any], number: str) -> str:
    values = [sample[number] for sample in row["samples"]]
    middle = statistics.median(values)
    return f"±{(max(values) - min(values)) / middle * 50:.0f} %" if middle else ""


def _line(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"
