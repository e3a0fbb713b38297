"""docs/performance.md shows what docs/benchmarks/ holds."""

from __future__ import annotations

from benchmarks.compare import report
from docs import performance


def test_the_page_is_up_to_date() -> None:
    assert performance.TARGET.read_text() == performance.text(), "run python -m docs.performance"


def test_every_chart_is_there() -> None:
    page = performance.TARGET.read_text()
    charts = [path.name for path in performance.MEASURED.glob("*.svg")]
    assert charts
    assert [name for name in charts if f"(benchmarks/{name})" not in page] == []


def test_numbers_are_written_for_people() -> None:
    assert [report.short(value) for value in (999.4, 999.6, 1000, 0.1234, 12345.6)] == [
        "999",
        "1,000",
        "1,000",
        "0.123",
        "12,346",
    ]
    assert "e+0" not in performance.TARGET.read_text()


def test_the_page_begins_with_five_lines_that_sum_it_up() -> None:
    assert sum(line.startswith("- ") for line in performance.summary().splitlines()) == 5


def test_what_http_costs_is_shown_once_it_is_measured() -> None:
    def row(kind: str, **numbers: float) -> dict[str, object]:
        return {"kind": kind, "samples": [numbers, numbers], "date": "2026-11-20", "commit": "abc"}

    latency = {f"produce_{name}_ms": 1.5 for name in ("p50", "p99", "p999")}
    facts = {"rounds": 3, "scale": 1.0, "cores": 2, "kernel": "6", "python": "3.11"}
    rows = {"nothing": row("beside", **latency, cores=0.1, rss_anon_mb=30.0)}
    text = performance.http_text({"facts": facts, "rows": rows})
    assert "2026-11-20, commit abc" in text
    assert "| nothing | 1.5 | 1.5 | 1.5 | 0.1 | 30 | ±0 % |" in text
    assert "### Requests" not in text
