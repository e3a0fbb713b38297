"""docs/performance.md shows what docs/benchmarks/ holds."""

from __future__ import annotations

from docs import performance


def test_the_page_is_up_to_date() -> None:
    assert performance.TARGET.read_text() == performance.text(), "run python -m docs.performance"


def test_every_chart_is_there() -> None:
    page = performance.TARGET.read_text()
    charts = [path.name for path in performance.MEASURED.glob("*.svg")]
    assert charts
    assert [name for name in charts if f"(benchmarks/{name})" not in page] == []
