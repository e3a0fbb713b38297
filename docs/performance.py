"""Writes the measured tables into docs/performance.md: `python -m docs.performance`.

They come from docs/benchmarks/, where `make bench` puts what it measured.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from benchmarks.compare import report
from benchmarks.growth import slug

TARGET = Path(__file__).with_name("performance.md")
MEASURED = Path(__file__).with_name("benchmarks")
BEGIN, END = "<!-- measured: written by docs/performance.py -->\n", "<!-- end of measured -->\n"


def text() -> str:
    """The page as it should be: what is written by hand, and the tables."""
    before, rest = TARGET.read_text().split(BEGIN)
    return before + BEGIN + tables() + END + rest.split(END)[1]


def tables() -> str:
    compared = json.loads((MEASURED / "compare.json").read_text())
    grown = json.loads((MEASURED / "growth.json").read_text())
    return (
        f"\n## Beside Apache Kafka\n\n{_facts(compared['facts'])}\n\n{report.table(compared['samples'])}\n"
        "![how many times better](benchmarks/compare.svg)\n\n"
        f"## How cost grows\n\n{_growth(grown)}\n"
    )


def _facts(facts: dict[str, str]) -> str:
    machine = f"{facts['cores']} cores shared by broker and clients, Linux {facts['kernel']}"
    return (
        f"Medians of {facts['rounds']} rounds in turns, scale {facts['scale']}; {machine}, "
        f"Python {facts['python']}, {facts['date']}, commit {facts['commit']}. "
        "Two numbers with a slash: kbroker / Apache Kafka. ✗ marks where kbroker is behind. Every sample: "
        "[compare.json](benchmarks/compare.json)."
    )


def _growth(series: dict[str, dict[str, dict[str, float]]]) -> str:
    parts = []
    for name, points in series.items():
        parts.append(f"**By {name}**: broker CPU per request (µs) and requests per second.\n")
        parts.append(_row([name, *points]))
        parts.append(_row(["---"] * (len(points) + 1)))
        for label, key in (("CPU µs", "cpu_us_per_request"), ("requests/s", "requests_per_s")):
            parts.append(_row([label, *(f"{point[key]:,.0f}" for point in points.values())]))
        parts.append(f"\n![{name}](benchmarks/growth-{slug(name)}.svg)\n")
    return "\n".join(parts).replace("|\n\n|", "|\n|")


def _row(cells: list[Any]) -> str:
    return f"| {' | '.join(map(str, cells))} |"


if __name__ == "__main__":
    TARGET.write_text(text())
