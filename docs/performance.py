"""Writes the measured tables into docs/performance.md: `python -m docs.performance`.

They come from docs/benchmarks/, where `make bench` puts what it measured.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from benchmarks.compare import report
from benchmarks.growth import slug
from benchmarks.http import report as http_report

TARGET = Path(__file__).with_name("performance.md")
MEASURED = Path(__file__).with_name("benchmarks")
SUMMARY_BEGIN, SUMMARY_END = "<!-- summary: written by docs/performance.py -->\n", "<!-- end of summary -->\n"
_SUMMARY = (
    (
        "Start and memory",
        (
            ("start, idle", "start s", "ready after {} s"),
            ("memory after 500 MB", "RssAnon MB", "{} MB of memory after 500 MB were written"),
        ),
    ),
    (
        "Writing, 1 KiB",
        (
            ("producer-perf 1 KiB", "records/s", "{} records/s"),
            ("producer-perf 1 KiB", "broker CPU s/GiB", "{} s of CPU per GiB"),
        ),
    ),
    (
        "Reading, 1 KiB",
        (
            ("consumer-perf 1 KiB from the start", "MB/s", "{} MB/s"),
            ("consumer-perf 1 KiB from the start", "broker CPU s/GiB", "{} s of CPU per GiB"),
        ),
    ),
    (
        "Latency at 1,000/s",
        (
            ("latency at 1,000/s", "end to end p50 ms", "end to end {} ms at p50"),
            ("latency at 1,000/s", "end to end p99 ms", "{} ms at p99"),
        ),
    ),
    (
        "Groups",
        (
            ("group: 10 members settle, classic", "settle s", "10 members settle in {} s"),
            ("group: commits, 100 clients", "commits/s", "{} commits/s of 100 clients"),
        ),
    ),
)
_HTTP_KINDS = (
    ("requests", "Requests, and the same by Kafka's protocol"),
    ("start", "What the port costs who does not use it"),
    ("first use", "The first request"),
    ("beside", "A Kafka producer, 1,000 records a second, beside load by HTTP"),
)
BEGIN, END = "<!-- measured: written by docs/performance.py -->\n", "<!-- end of measured -->\n"


def text() -> str:
    """The page as it should be: what is written by hand, and the tables."""
    before, rest = TARGET.read_text().split(BEGIN)
    title, introduction = before.split(SUMMARY_BEGIN)[0], before.split(SUMMARY_END)[1]
    top = title + SUMMARY_BEGIN + summary() + SUMMARY_END + introduction
    return top + BEGIN + tables() + END + rest.split(END)[1]


def summary() -> str:
    """Five lines for who reads no tables."""
    compared = json.loads((MEASURED / "compare.json").read_text())
    lines = report.lines(compared["samples"])
    found = {(line.row, line.unit): line for line in lines}
    behind = sum(not line.better for line in lines)
    told = [
        f"- **{title}**: {' · '.join(_pair(found[row, unit], text) for row, unit, text in numbers)}"
        for title, numbers in _SUMMARY
    ]
    worse = f"{behind or 'None'} of the {len(lines)} numbers below {'are' if behind > 1 else 'is'} worse"
    head = f"kbroker, and in brackets Apache Kafka on the same machine. {worse} than Kafka's.\n"
    return "\n".join([head, *told]) + "\n"


def _pair(line: report.Line, text: str) -> str:
    return text.format(f"{report.short(line.kbroker)} ({report.short(line.kafka)})")


def tables() -> str:
    compared = json.loads((MEASURED / "compare.json").read_text())
    grown = json.loads((MEASURED / "growth.json").read_text())
    return (
        f"\n## Beside Apache Kafka\n\n{_facts(compared['facts'])}{_later(compared.get('later', {}))}\n\n"
        f"{report.table(compared['samples'])}\n"
        "![how many times better](benchmarks/compare.svg)\n\n"
        f"### What security costs\n\n{_security(compared['samples'])}\n"
        f"{_http()}"
        f"## How cost grows\n\n{_growth(grown)}\n"
    )


def _http() -> str:
    """What HTTP costs, once it was measured."""
    path = MEASURED / "http.json"
    return http_text(json.loads(path.read_text())) if path.exists() else ""


def http_text(measured: dict[str, Any]) -> str:
    facts, rows = measured["facts"], measured["rows"]
    taken = sorted({(row["date"], row["commit"]) for row in rows.values()})
    when = "; ".join(f"{date}, commit {commit}" for date, commit in taken)
    told = (
        f"Medians of {facts['rounds']} rounds, scale {facts['scale']}; {facts['cores']} cores shared by "
        f"broker and clients, Linux {facts['kernel']}, Python {facts['python']}, {when}. Every sample: "
        "[http.json](benchmarks/http.json)."
    )
    parts = ["## HTTP\n", told + "\n"]
    for kind, title in _HTTP_KINDS:
        if any(row["kind"] == kind for row in rows.values()):
            parts += [f"### {title}\n", http_report.table(kind, rows)]
    return "\n".join(parts) + "\n"


def _facts(facts: dict[str, str]) -> str:
    machine = f"{facts['cores']} cores shared by broker and clients, Linux {facts['kernel']}"
    return (
        f"Medians of {facts['rounds']} rounds in turns, scale {facts['scale']}; {machine}, "
        f"Python {facts['python']}, {facts['date']}, commit {facts['commit']}. "
        "Two numbers with a slash: kbroker / Apache Kafka. ✗ marks where kbroker is behind. Every sample: "
        "[compare.json](benchmarks/compare.json)."
    )


def _later(later: dict[str, dict[str, str]]) -> str:
    """Which rows are of other runs, by the first word of their names."""
    runs: dict[tuple[str, str], dict[str, None]] = {}
    for row, facts in later.items():
        runs.setdefault((row.split(":")[0], facts["date"]), {})[facts["commit"]] = None
    return "".join(
        f" Rows of *{kind}*: measured later, {date}, {'commits' if len(commits) > 1 else 'commit'} "
        f"{', '.join(commits)}."
        for (kind, date), commits in runs.items()
    )


def _security(samples: report.Samples) -> str:
    """A column for each way to the broker; kbroker / Apache Kafka."""
    ways: list[str] = []
    found: dict[tuple[str, str], dict[str, str]] = {}
    for line in report.lines(samples):
        kind, _, name = line.row.partition(": ")
        if kind == "security":
            way, _, load = name.partition(", ")
            ways += [] if way in ways else [way]
            both = f"{report.short(line.kbroker)} / {report.short(line.kafka)}"
            found.setdefault((load, line.unit), {})[way] = both
    out = [_row(["load", "measured", *ways]), _row(["---"] * (2 + len(ways)))]
    out += [_row([load, unit, *(each.get(way, "") for way in ways)]) for (load, unit), each in found.items()]
    return "\n".join(out) + "\n"


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
