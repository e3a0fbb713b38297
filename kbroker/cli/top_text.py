"""What `kbroker top` shows, in words: the same lines and columns for a live view and for a pipe."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from kbroker.cli.output import plural, print_table, say, size_text

Row = dict[str, Any]
Columns = dict[str, tuple[str, Callable[[Any], str]]]
"""Key of a row → its heading, and how its values are written."""

UNKNOWN = "-"
_ANSWERED = {"kafka": "answers in {} ms", "metrics": "metrics in {} ms"}


def number(value: float) -> str:
    return f"{value:,.0f}" if value >= 10 or value == round(value) else f"{value:,.1f}"


def milliseconds(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:,.1f}" if value >= 1 else f"{value:.2f}"


def duration(seconds: float) -> str:
    for length, unit in ((86400, "d"), (3600, "h"), (60, "min")):
        if seconds >= 2 * length:
            return f"{seconds / length:.0f} {unit}"
    return f"{seconds:.0f} s" if seconds >= 10 else f"{seconds:.1f} s"


def printable(name: object) -> str:
    """Names come from clients: what would move the cursor is shown as what it is."""
    text = str(name)
    return text if text.isprintable() else "".join(c if c.isprintable() else "�" for c in text)


TABLES: Mapping[str, Columns] = {
    "topics": {
        "topic": ("TOPIC", printable),
        "partitions": ("PARTITIONS", number),
        "records_per_second": ("RECORDS/S", number),
        "bytes_in_per_second": ("IN/S", size_text),
        "bytes_out_per_second": ("OUT/S", size_text),
        "log_bytes": ("SIZE", size_text),
        "log_growth_per_second": ("GROWTH/S", size_text),
    },
    "groups": {
        "group": ("GROUP", printable),
        "type": ("TYPE", printable),
        "state": ("STATE", printable),
        "members": ("MEMBERS", number),
        "lag": ("LAG", number),
        "lag_seconds": ("BEHIND", duration),
        "records_per_second": ("DONE/S", number),
    },
    "requests": {
        "api": ("REQUEST", printable),
        "per_second": ("PER SECOND", number),
        "errors_per_second": ("ERRORS/S", number),
        "mean_ms": ("MEAN MS", milliseconds),
        "p50_ms": ("P50 MS", milliseconds),
        "p99_ms": ("P99 MS", milliseconds),
    },
}


def columns_of(table: str, rows: list[Row]) -> Columns:
    """Those that any row has something in."""
    return {
        key: column
        for key, column in TABLES[table].items()
        if not rows or any(row[key] is not None for row in rows)
    }


def cells(columns: Columns, row: Row) -> list[str]:
    return [UNKNOWN if row[key] is None else write(row[key]) for key, (_, write) in columns.items()]


def headlines(document: Row) -> list[str]:
    """The cluster, what goes through it, the process, the disk: one line each, as far as it is known."""
    process, disk = document["process"], document["disk"]
    lines = [
        _joined(
            f"cluster {printable(document['cluster_id'])}",
            plural(len(document["brokers"]), "broker"),
            plural(len(document["topics"]), "topic"),
            plural(document["partitions"], "partition"),
            _said(_ANSWERED[document["source"]], milliseconds, document["answer_ms"]),
        ),
        _joined(
            _said("{} records/s", number, document["throughput"]["records_per_second"]),
            _said("in {}/s", size_text, document["throughput"]["bytes_in_per_second"]),
            _said("out {}/s", size_text, document["throughput"]["bytes_out_per_second"]),
            _said("{} requests/s", number, document["throughput"]["requests_per_second"]),
            _said("{} errors/s", number, document["throughput"]["errors_per_second"]),
        ),
        _joined(
            _said("memory {}", size_text, process["memory_bytes"]),
            _said("CPU {} %", number, process["cpu_percent"]),
            _said("{} connections", number, process["connections"]),
            _said("{}", number, process["open_files"], f" of {number(process['most_files'] or 0)} files"),
            _said("up {}", duration, process["up_seconds"]),
        ),
        _joined(
            _said("logs {}", size_text, disk["log_bytes"]),
            _said("growing {}/s", size_text, disk["log_growth_per_second"]),
            _said("{} free", size_text, disk["usable_bytes"], f" of {size_text(disk['total_bytes'] or 0)}"),
            _full_in(disk),
        ),
    ]
    if document["left_out"]:
        lines.append(
            f"{plural(document['left_out'], 'series')} left out by the broker: kbroker.metrics.max.series"
        )
    return [line for line in lines if line]


def _joined(*parts: str) -> str:
    return " · ".join(part for part in parts if part)


def _said(words: str, write: Callable[[Any], str], value: float | None, behind: str = "") -> str:
    return "" if value is None else words.format(write(value)) + behind


def _full_in(disk: Row) -> str:
    """If it goes on like this, within a week."""
    growth, usable = disk["log_growth_per_second"] or 0, disk["usable_bytes"]
    if usable is None or growth <= 0 or usable / growth > 7 * 86400:
        return ""
    return f"full in {duration(usable / growth)}"


def print_text(document: Row, most_rows: int) -> None:
    for line in headlines(document):
        say(line)
    for table in TABLES:
        rows = document[table]
        if rows:
            say()
            columns = columns_of(table, rows)
            print_table(
                [heading for heading, _ in columns.values()],
                [cells(columns, row) for row in rows[:most_rows]],
            )
            if len(rows) > most_rows:
                say(f"and {len(rows) - most_rows:,} more")
