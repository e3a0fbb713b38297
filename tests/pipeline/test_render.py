from __future__ import annotations

import io

from kbroker.pipeline.live import Display
from kbroker.pipeline.progress import Progress
from kbroker.pipeline.render import bar, bar_chart, progress_bar, table


def test_numbers_stand_to_the_right() -> None:
    assert table(("name", "rows"), [("a", 5), ("bcdef", 1234)]).splitlines() == [
        "name    rows",
        "─────  ─────",
        "a          5",
        "bcdef  1,234",
    ]


def test_an_empty_table_has_its_headings() -> None:
    assert table(("name", "rows"), []).splitlines() == ["name  rows", "────  ────"]


def test_bars_fill_in_eighths() -> None:
    assert bar(0.5, 4) == "██  "
    assert bar(1 / 32, 4) == "▏   "
    assert bar(2.0, 4) == "████"
    assert progress_bar(0, 0, 4) == "▕████▏ 100%"
    assert progress_bar(1, 2, 4) == "▕██  ▏  50%"


def test_a_chart_has_one_scale() -> None:
    assert bar_chart({"00": 50, "01": 100}, width=4) == "00 ██   50\n01 ████ 100"


def test_without_a_terminal_progress_is_a_line_when_it_changes() -> None:
    out = io.StringIO()
    display = Display(out)
    progress = Progress("out", rows=10, offsets={"t": {0: 10}}, latest={"t": {0: 12}})
    display([progress])
    display.close([progress])
    assert out.getvalue() == "out 10 rows, 2 behind\n"


def test_a_line_tells_what_came_too_late() -> None:
    out = io.StringIO()
    Display(out)([Progress("silver", rows=10, late_rows=3, late_letters=2), Progress("gold", late_groups=1)])
    assert (
        out.getvalue()
        == "silver 10 rows, 0 behind, late: 3 rows, 2 sent; gold 0 rows, 0 behind, late: 1 groups\n"
    )


def test_a_terminal_is_drawn_in_place() -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    out = Terminal()
    display = Display(out)
    display([Progress("out")])
    display([Progress("out", rows=10, offsets={"t": {0: 10}}, latest={"t": {0: 20}})])
    assert "\x1b[3A" in out.getvalue()
    assert "50%" in out.getvalue()
