"""What the runner makes of a query, without Spark: a stand-in ends when the test wants it to."""

from __future__ import annotations

from typing import Any

from kbroker.pipeline.progress import Progress
from kbroker.pipeline.runner import Query

from .test_state import report


class EndingQuery:
    """A streaming query that runs its last batch, and ends, right after its reports were looked at."""

    def __init__(self) -> None:
        self.isActive = True
        self.recentProgress = [report(0, 10, 10)]

    @property
    def lastProgress(self) -> dict[str, object]:
        last = self.recentProgress[-1]
        if self.isActive:
            self.isActive = False
            later = {**report(1, 5, 15), "timestamp": "2026-01-01T00:00:01.000Z"}
            self.recentProgress = [*self.recentProgress, later]
        return last

    def exception(self) -> None:
        return None


def test_the_last_batch_of_a_query_that_ends_between_two_looks_is_counted() -> None:
    running: Any = EndingQuery()
    query = Query("out", lambda: running, Progress("out"))
    while not query.done:
        query.step(now=0.0, retry_seconds=1.0)
    assert (query.progress.rows, query.progress.offsets) == (15, {"t": {0: 15}})
