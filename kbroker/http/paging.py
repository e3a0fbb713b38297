"""Lists that come page by page: ``limit`` entries behind ``after``, and where the next page begins."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kbroker.http.endpoint import Parameter, Schema
from kbroker.http.problems import Problem

if TYPE_CHECKING:
    from kbroker.http.request import HttpRequest

MOST = 1000
USUAL = 100

_LIMIT: Schema = {"type": "integer", "minimum": 1, "maximum": MOST, "default": USUAL}
LIMIT = Parameter("limit", f"How many at most, up to {MOST}.", _LIMIT)
NEXT: Schema = {"type": ["string", "integer", "null"], "description": "As after, for the next page."}


def limit_of(request: HttpRequest) -> int:
    limit = request.query("limit", int, USUAL)
    if not 1 <= limit <= MOST:
        raise Problem(400, f"limit must be from 1 to {MOST}, not {limit}.")
    return limit
