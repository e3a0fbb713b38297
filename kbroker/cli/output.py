"""What commands print: a table for people, aligned columns for pipes, JSON for programs."""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from kbroker.cli import drop_output

_NUMBER = re.compile(r"-?\d+(\.\d+)?|-")


def add_output_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print JSON")


def say(text: str = "") -> None:
    """Where nobody reads it any more the command goes on: its exit code still counts."""
    try:
        stream(text)
    except BrokenPipeError:
        drop_output()


def stream(text: str) -> None:
    """One line of many: where nobody reads them any more, the command ends."""
    print(text)  # noqa: T201


def note(text: str) -> None:
    """What is not data goes to standard error."""
    print(text, file=sys.stderr)  # noqa: T201


def print_json(value: Any) -> None:
    say(json.dumps(value, indent=2, default=str, ensure_ascii=False))


def print_table(
    columns: Sequence[str],
    rows: Iterable[Sequence[object]],
    title: str | None = None,
    write: Callable[[str], None] = say,
) -> None:
    """A table; numbers stand right. In a terminal it is drawn, elsewhere it is plain aligned columns."""
    cells = [[_cell(value) for value in row] for row in rows]
    right = [
        bool(cells) and all(_NUMBER.fullmatch(row[column]) for row in cells) for column in range(len(columns))
    ]
    if sys.stdout.isatty():
        _draw(columns, cells, right, title)
        return
    if title is not None:
        write(title)
    widths = [max(map(len, column)) for column in zip(columns, *cells, strict=True)]
    for row in (columns, *cells):
        parts = (
            cell.rjust(width) if numeric else cell.ljust(width)
            for cell, width, numeric in zip(row, widths, right, strict=True)
        )
        write("  ".join(parts).rstrip())


def print_rows(
    arguments: argparse.Namespace, rows: Sequence[Mapping[str, Any]], columns: Mapping[str, str]
) -> None:
    """Rows as JSON, whole, or as a table of the columns: key of a row → heading."""
    if arguments.json:
        print_json(list(rows))
    else:
        print_table(list(columns.values()), [[row[key] for key in columns] for row in rows])


def _draw(
    columns: Sequence[str], cells: Sequence[Sequence[str]], right: Sequence[bool], title: str | None
) -> None:
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, title=title, title_justify="left", header_style="bold")
    for name, numeric in zip(columns, right, strict=True):
        table.add_column(name, justify="right" if numeric else "left", overflow="fold")
    for row in cells:
        table.add_row(*map(Text, row))
    Console().print(table)


def _cell(value: object) -> str:
    if value is None:
        return "-"
    if isinstance(value, (list, tuple)):
        return ",".join(map(str, value))
    return str(value)


def size_text(count: float) -> str:
    """Bytes for people."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if abs(count) < 1024 or unit == "GiB":
            break
        count /= 1024
    return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"


def plural(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"
