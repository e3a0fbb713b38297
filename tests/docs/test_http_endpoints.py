"""docs/http-endpoints.md says what the table of endpoints says."""

from __future__ import annotations

from docs import http_endpoints


def test_the_page_is_up_to_date() -> None:
    assert http_endpoints.TARGET.read_text() == http_endpoints.text(), "run python -m docs.http_endpoints"
