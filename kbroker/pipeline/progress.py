"""What each query has done: Spark's progress reports, kept in the state directory.

Invariant: a batch is counted once, whatever the number of reports and restarts. A query that waits for
records reports, too, under the number of the batch that comes next: such a report counts nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from kbroker.pipeline.state import State, parse_offsets, slowest
from kbroker.pipeline.views import REJECTED

Offsets = dict[str, dict[int, int]]


@dataclass(slots=True)
class Progress:
    """Of one query, over all its runs."""

    query: str
    batch: int = -1
    timestamp: str = ""
    rows: int = 0
    rejected: int = 0
    last_rows: int = 0
    rows_per_second: float = 0.0
    offsets: Offsets = field(default_factory=dict)
    latest: Offsets = field(default_factory=dict)
    heard: str = ""
    """When the newest report was made, in this process."""

    @classmethod
    def load(cls, state: State, query: str) -> Progress:
        kept = state.read_progress(query)
        return cls(
            query,
            batch=kept.get("batch", -1),
            timestamp=kept.get("timestamp", ""),
            rows=kept.get("rows", 0),
            rejected=kept.get("rejected", 0),
            last_rows=kept.get("last_rows", 0),
            rows_per_second=kept.get("rows_per_second", 0.0),
        )

    def take(self, reports: Iterable[Mapping[str, Any]]) -> bool:
        """Add Spark's newest reports; says whether the query was heard of since the last look."""
        news = False
        for report in reports:
            if str(report["timestamp"]) > self.heard:
                self.heard = str(report["timestamp"])
                news = True
            self._take_offsets(report)
            if report["batchId"] > self.batch and not _idle(report):
                self._take_batch(report)
        return news

    def _take_batch(self, report: Mapping[str, Any]) -> None:
        self.batch = int(report["batchId"])
        self.timestamp = str(report["timestamp"])
        count = int(report["numInputRows"])
        if count:
            self.last_rows = count
            self.rows_per_second = float(report.get("processedRowsPerSecond") or 0.0)
        self.rows += count
        for metrics in (report.get("observedMetrics") or {}).values():
            self.rejected += int(_metric(metrics, REJECTED))

    def _take_offsets(self, report: Mapping[str, Any]) -> None:
        sources = report.get("sources") or ()
        self.offsets |= slowest(parse_offsets(source.get("endOffset")) for source in sources)
        for source in sources:
            self.latest |= parse_offsets(source.get("latestOffset"))

    @property
    def behind(self) -> int:
        """Records that were there at the last report and are not written yet."""
        return lag(self.offsets, self.latest)

    def save(self, state: State) -> None:
        state.write_progress(
            self.query,
            {
                "batch": self.batch,
                "timestamp": self.timestamp,
                "rows": self.rows,
                "rejected": self.rejected,
                "last_rows": self.last_rows,
                "rows_per_second": self.rows_per_second,
            },
        )


def lag(offsets: Mapping[str, Mapping[int, int]], ends: Mapping[str, Mapping[int, int]]) -> int:
    """How many records lie between; a partition without offset has not been read at all."""
    return sum(
        max(0, end - offsets.get(topic, {}).get(partition, 0))
        for topic, partitions in ends.items()
        for partition, end in partitions.items()
    )


def _idle(report: Mapping[str, Any]) -> bool:
    """Whether Spark looked for records and ran no batch."""
    durations = report.get("durationMs") or {}
    return "latestOffset" in durations and "addBatch" not in durations


def _metric(metrics: Any, name: str) -> int:
    if isinstance(metrics, Mapping):
        return int(metrics.get(name) or 0)
    return int(getattr(metrics, name, 0) or 0)
