"""Tables, bars and charts as text for a terminal."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

_EIGHTHS = " ▏▎▍▌▋▊▉█"


def table(headings: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Columns as wide as needed; numbers to the right."""
    cells = [[_text(value) for value in row] for row in rows]
    widths = [
        max(len(heading), *(len(row[index]) for row in cells)) if cells else len(heading)
        for index, heading in enumerate(headings)
    ]
    right = [bool(cells) and all(_numeric(row[index]) for row in cells) for index in range(len(headings))]

    def line(values: Sequence[str]) -> str:
        parts = [
            value.rjust(width) if to_right else value.ljust(width)
            for value, width, to_right in zip(values, widths, right, strict=True)
        ]
        return "  ".join(parts).rstrip()

    return "\n".join([line(list(headings)), "  ".join("─" * width for width in widths), *map(line, cells)])


def bar(share: float, width: int) -> str:
    """A bar that fills `share` of its width, in eighths of a character."""
    eighths = round(max(0.0, min(1.0, share)) * width * 8)
    whole, rest = divmod(eighths, 8)
    return ("█" * whole + (_EIGHTHS[rest] if rest else "")).ljust(width)


def progress_bar(done: int, total: int, width: int = 24) -> str:
    share = 1.0 if total <= 0 else done / total
    return f"▕{bar(share, width)}▏{100 * min(share, 1.0):4.0f}%"


def bar_chart(values: Mapping[str, float], width: int = 48, unit: str = "") -> str:
    """One bar per name, all to the same scale."""
    longest = max((len(name) for name in values), default=0)
    most = max(values.values(), default=0.0) or 1.0
    return "\n".join(
        f"{name.rjust(longest)} {bar(value / most, width)} {value:,.0f}{unit}"
        for name, value in values.items()
    )


def _text(value: object) -> str:
    if isinstance(value, float):
        return f"{value:,.1f}"
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)


def _numeric(text: str) -> bool:
    return text.replace(",", "").replace(".", "").replace("-", "").isdigit() or text in ("", "-")
