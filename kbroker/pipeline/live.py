"""What `run` shows while it runs: bars drawn in place on a terminal, else a line now and then."""

from __future__ import annotations

import sys
import time
from typing import TextIO

from kbroker.pipeline.progress import Progress
from kbroker.pipeline.render import progress_bar, table

LINE_EVERY_SECONDS = 10.0


class Display:
    """Called with the progress of all queries after each look at them."""

    def __init__(self, out: TextIO | None = None) -> None:
        self._out = out or sys.stdout
        self._drawn = 0
        self._next_line = 0.0
        self._shown = ""

    def __call__(self, progress: list[Progress]) -> None:
        if self._out.isatty():
            self._draw(render(progress))
        elif time.monotonic() >= self._next_line:
            self._line(progress)

    def close(self, progress: list[Progress]) -> None:
        if self._out.isatty():
            self._draw(render(progress))
        else:
            self._line(progress)

    def _draw(self, text: str) -> None:
        if text == self._shown:
            return
        up = f"\x1b[{self._drawn}A" if self._drawn else ""
        lines = text.split("\n")
        self._out.write(up + "".join(f"\x1b[2K{line}\n" for line in lines))
        self._out.flush()
        self._drawn, self._shown = len(lines), text

    def _line(self, progress: list[Progress]) -> None:
        parts = [
            f"{each.query} {each.rows:,} rows, {each.behind:,} behind"
            + (f", late: {each.late}" if each.late else "")
            for each in progress
        ]
        rejected = max((each.rejected for each in progress), default=0)
        text = "; ".join(parts) + (f"; {rejected:,} rejected" if rejected else "")
        if text != self._shown:
            self._out.write(text + "\n")
            self._out.flush()
        self._shown = text
        self._next_line = time.monotonic() + LINE_EVERY_SECONDS


def render(progress: list[Progress]) -> str:
    rows = []
    for each in progress:
        behind = each.behind
        done = sum(offset for partitions in each.offsets.values() for offset in partitions.values())
        state = progress_bar(done, done + behind) if each.offsets else "starting"
        rows.append(
            (each.query, state, behind, each.rows, each.rows_per_second, each.rejected, each.late or 0)
        )
    return table(("query", "read", "behind", "rows", "rows/s", "rejected", "late"), rows)
