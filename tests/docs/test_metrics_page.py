"""docs/metrics.md says what the table of metrics says."""

from __future__ import annotations

from docs import metrics_page


def test_the_page_is_up_to_date() -> None:
    assert metrics_page.TARGET.read_text() == metrics_page.text(), "run python -m docs.metrics_page"
