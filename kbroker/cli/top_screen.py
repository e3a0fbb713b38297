"""What the live view of `kbroker top` looks like, and what keys do to it."""

from __future__ import annotations

import argparse
from collections import deque
from typing import Any

from kbroker.cli.top_rates import GROUP_ORDERS, REQUEST_ORDERS, TOPIC_ORDERS, ordered
from kbroker.cli.top_text import TABLES, Row, cells, columns_of, headlines, printable

_ORDERS = {"topics": TOPIC_ORDERS, "groups": GROUP_ORDERS, "requests": REQUEST_ORDERS}
_INTERVALS_MS = (250, 500, 1000, 2000, 5000, 10_000, 30_000, 60_000)
_AROUND = 2
"""Lines of a table beside its rows: what it shows, and the headings."""
_BARS = " ▁▂▃▄▅▆▇█"
_UP, _DOWN, _PAGE_UP, _PAGE_DOWN = "\x1b[A", "\x1b[B", "\x1b[5~", "\x1b[6~"
_HELP = (
    ("q", "end"),
    ("a t g r", "all · topics · groups · requests alone"),
    ("s", "order by the next column"),
    ("↑ ↓ PgUp PgDn", "scroll"),
    ("p", "pause, go on"),
    ("+ -", "look more often, less often"),
    ("h", "these keys"),
)


class Screen:
    def __init__(self, arguments: argparse.Namespace) -> None:
        self.interval_ms: int = arguments.interval
        self._where = arguments.http or arguments.bootstrap
        self._document: Row | None = None
        self._paused: Row | None = None
        self._problem = ""
        self._arguments = arguments
        self._history: deque[float] = deque(maxlen=60)
        self._alone: str | None = None
        self._order = dict.fromkeys(_ORDERS, 0)
        self._first_row = 0
        self._page = 1
        self._help = False

    def show(self, document: Row | None, error: BaseException | None) -> None:
        """What a look found; of one that failed, why, beside what was found before."""
        if document is not None:
            self._document = document
            self._history.append(document["throughput"]["records_per_second"] or 0)
        self._problem = "" if error is None else self._explained(error)

    def _explained(self, error: BaseException) -> str:
        from kbroker.cli.errors import explain

        return str(explain(error, self._arguments) or f"{type(error).__name__}: {error}")

    def press(self, keys: str) -> bool:
        """Whether that ends it."""
        if keys.startswith("\x1b"):
            self._scroll(*_SCROLLS.get(keys, (0, 0)))
            return False
        for key in keys:
            if key in "qQ":
                return True
            self._press(key)
        return False

    def _press(self, key: str) -> None:
        if key in "atgr":
            self._alone = {"t": "topics", "g": "groups", "r": "requests"}.get(key)
            self._first_row = 0
        elif key == "s":
            for table in [self._alone] if self._alone else list(_ORDERS):
                self._order[table] = (self._order[table] + 1) % len(_ORDERS[table])
        elif key in "p ":
            self._paused = self._document if self._paused is None else None
        elif key in "+-":
            self._change_interval(-1 if key == "+" else 1)
        elif key in "h?":
            self._help = not self._help
        elif key in "jk":
            self._scroll(1 if key == "j" else -1)

    def _scroll(self, rows: int, pages: int = 0) -> None:
        self._first_row = max(0, self._first_row + rows + pages * self._page)

    def _change_interval(self, step: int) -> None:
        others = [each for each in _INTERVALS_MS if (each - self.interval_ms) * step > 0]
        if others:
            self.interval_ms = min(others) if step > 0 else max(others)

    def drawn(self, width: int, height: int) -> Any:
        """As many rows as there is room for, and no line that wraps."""
        from rich.console import Group
        from rich.text import Text

        document = self._document if self._paused is None else self._paused
        lines = [Text(self._title(), style="bold")]
        if document is not None:
            found = headlines(document)
            if len(self._history) > 1:
                found[1] += "  " + _bars(self._history)
            lines += map(Text, found)
        if self._problem:
            lines.append(Text(printable(self._problem), style="bold red"))
        for line in lines:
            line.truncate(width, overflow="ellipsis")
        footer = Text("q end  a all  t topics  g groups  r requests  s order  p pause  + - interval  h help")
        footer.truncate(width, overflow="ellipsis", pad=True)
        footer.stylize("reverse")
        room = height - len(lines) - 1
        body: list[Any] = []
        used = 0
        if self._help:
            body = [Text(f"{keys:<14}  {text}", no_wrap=True) for keys, text in _HELP][: max(room, 0)]
            used = len(body)
        elif document is not None:
            body = self._tables(document, room)
            used = sum(each.row_count + _AROUND for each in body)
        return Group(*lines, *body, *[Text("")] * max(room - used, 0), footer)

    def _title(self) -> str:
        state = " · paused" if self._paused is not None else ""
        if self._document is None and not self._problem:
            state += " · looking …"
        return f"kbroker top · {printable(self._where)} · every {self.interval_ms / 1000:g} s{state}"

    def _tables(self, document: Row, room: int) -> list[Any]:
        """What one does not need of its room the others have."""
        names = ([self._alone] if self._alone else list(TABLES))[: room // (_AROUND + 1)]
        known = {name: document[name] for name in names if document[name] is not None}
        tables = []
        for done, (name, rows) in enumerate(known.items()):
            left = len(known) - done
            needed = sum(len(each) + _AROUND for each in list(known.values())[done + 1 :])
            table = self._table(name, rows, max(room // left, room - needed) - _AROUND)
            room -= table.row_count + _AROUND
            tables.append(table)
        return tables

    def _table(self, name: str, rows: list[Row], most: int) -> Any:
        from rich.table import Table
        from rich.text import Text

        order = _ORDERS[name][self._order[name]]
        columns = columns_of(name, rows)
        first = 0
        if self._alone:
            self._page = most
            first = self._first_row = min(self._first_row, max(len(rows) - most, 0))
        table = Table(box=None, expand=True, padding=(0, 1, 0, 0), header_style="bold", title_justify="left")
        table.title = Text(
            f"{name} {first + 1}-{min(first + most, len(rows))} of {len(rows):,}" if rows else f"no {name}",
            style="cyan",
            no_wrap=True,
        )
        for key, (heading, _) in columns.items():
            left = key in ("topic", "group", "api", "type", "state")
            table.add_column(
                heading + ("▼" if key == order and len(rows) > 1 else ""),
                justify="left" if left else "right",
                no_wrap=True,
                overflow="ellipsis",
                ratio=1 if key in ("topic", "group", "api") else None,
            )
        for row in ordered(rows, order)[first : first + most]:
            table.add_row(*map(Text, cells(columns, row)), style=_style(row))
        return table


_SCROLLS = {_UP: (-1, 0), _DOWN: (1, 0), _PAGE_UP: (0, -1), _PAGE_DOWN: (0, 1)}
"""Keys as terminals send them → rows, pages."""


def _style(row: Row) -> str | None:
    """What is behind and does not move, or answers with errors."""
    stands = bool(row.get("lag")) and row["records_per_second"] == 0
    return "red" if stands or row.get("errors_per_second") else None


def _bars(history: deque[float]) -> str:
    most = max(history) or 1
    return "".join(_BARS[round(each / most * (len(_BARS) - 1))] for each in history)
