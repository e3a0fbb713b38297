"""`kbroker lag`: how far groups are behind, as it changes."""

from __future__ import annotations

import argparse
import sys
import time
from typing import Any

from kbroker.cli import connection
from kbroker.cli.group_facts import NOTHING_READ, SHARE, group_lag, lag_columns
from kbroker.cli.output import add_output_options, note, print_rows
from kbroker.cli.times import duration_ms
from kbroker.exit_codes import FOUND, OK

Key = tuple[str, str, int]
Seen = dict[
    Key, tuple[float, int | None]
]  # when, and the committed offset, or the start offset of a share group


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "lag",
        help="watch how far groups of consumers are behind",
        description="Show the lag of groups of every type: in a terminal as a live view until Ctrl-C, else "
        "once. Where a group has committed nothing yet, every record of an assigned partition counts. A "
        "share group has a START instead: what is before it is done, and what is done behind it is no lag. "
        "With --max the exit code is 4 if a partition's lag is larger; 1 if there is no such group.",
    )
    parser.add_argument("groups", nargs="*", metavar="GROUP", help="default: all")
    parser.add_argument(
        "--interval", type=duration_ms, default=2000, metavar="TIME", help="between two looks (default 2s)"
    )
    parser.add_argument("--once", action="store_true", help="look once, also in a terminal")
    parser.add_argument("--max", type=int, metavar="N", help="look once; exit code 4 if a lag is above N")
    add_output_options(parser)
    connection.add_connection_options(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    with connection.admin(arguments) as client:
        if sys.stdout.isatty() and not arguments.once and not arguments.json and arguments.max is None:
            _watch(client, arguments)
            return OK
        rows = group_lag(client, arguments, arguments.groups)
    if rows or arguments.json:
        print_rows(arguments, rows, lag_columns(rows))
    else:
        note(NOTHING_READ)
    too_large = arguments.max is not None and any((row["lag"] or 0) > arguments.max for row in rows)
    return FOUND if too_large else OK


def _watch(client: Any, arguments: argparse.Namespace) -> None:
    from rich.live import Live

    seen: Seen = {}
    with Live(auto_refresh=False, screen=False) as live:
        while True:
            rows = group_lag(client, arguments, arguments.groups)
            live.update(_table(rows, seen), refresh=True)
            now = time.monotonic()
            seen = {_key(row): (now, _position(row)) for row in rows}
            time.sleep(arguments.interval / 1000)


def _key(row: dict[str, Any]) -> Key:
    return row["group"], row["topic"], row["partition"]


def _table(rows: list[dict[str, Any]], seen: Seen) -> Any:
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, header_style="bold", caption="Ctrl-C ends", caption_justify="left")
    columns = lag_columns(rows)
    for name in (*columns.values(), "PER SECOND", "CAUGHT UP IN"):
        table.add_column(name, justify="left" if name in ("GROUP", "TOPIC") else "right")
    for row in rows:
        rate = _rate(row, seen)
        table.add_row(
            *("-" if row[key] is None else str(row[key]) for key in columns),
            "" if rate is None else f"{rate:,.0f}",
            _remaining(row["lag"], rate),
            style="red" if row["lag"] and not rate and rate is not None else None,
        )
    return table


def _position(row: dict[str, Any]) -> int | None:
    found: int | None = row["start_offset" if row["type"] == SHARE else "committed_offset"]
    return found


def _rate(row: dict[str, Any], seen: Seen) -> float | None:
    """Records done per second since the last look."""
    when, before = seen.get(_key(row), (0.0, None))
    position = _position(row)
    if before is None or position is None:
        return None
    return max(0, position - before) / max(time.monotonic() - when, 1e-3)


def _remaining(lag: int | None, rate: float | None) -> str:
    if not lag:
        return "" if lag is None else "now"
    return f"{lag / rate:,.0f} s" if rate else ""
