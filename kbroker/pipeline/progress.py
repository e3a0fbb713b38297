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
    late_rows: int = 0
    """Behind the watermark, so that a deduplication or a join left them out."""
    late_groups: int = 0
    """Groups of such rows that an aggregation left out: of rows of one window and key in one batch, Spark
    counts one."""
    late_letters: int = 0
    """Late records that were sent to a dead-letter topic."""
    late_handled: int | None = None
    """The last batch whose late records were sent; None where they are not sent."""
    last_rows: int = 0
    rows_per_second: float = 0.0
    offsets: Offsets = field(default_factory=dict)
    latest: Offsets = field(default_factory=dict)
    heard: str = ""
    """When the newest report was made, in this process."""
    dropped: dict[int, int] | None = None
    """By batch, where someone takes them from here: what was left out as late."""

    @classmethod
    def load(cls, state: State, query: str) -> Progress:
        kept = state.read_progress(query)
        return cls(
            query,
            batch=kept.get("batch", -1),
            timestamp=kept.get("timestamp", ""),
            rows=kept.get("rows", 0),
            rejected=kept.get("rejected", 0),
            late_rows=kept.get("late_rows", 0),
            late_groups=kept.get("late_groups", 0),
            late_letters=kept.get("late_letters", 0),
            late_handled=kept.get("late_handled"),
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
        self._take_late(report)

    def _take_late(self, report: Mapping[str, Any]) -> None:
        dropped = 0
        for operator in report.get("stateOperators") or ():
            count = int(operator.get("numRowsDroppedByWatermark") or 0)
            dropped += count
            if operator.get("operatorName") == "stateStoreSave":
                self.late_groups += count
            else:
                self.late_rows += count
        if self.dropped is not None:
            self.dropped[self.batch] = dropped

    def _take_offsets(self, report: Mapping[str, Any]) -> None:
        sources = report.get("sources") or ()
        self.offsets |= slowest(parse_offsets(source.get("endOffset")) for source in sources)
        for source in sources:
            self.latest |= parse_offsets(source.get("latestOffset"))

    @property
    def behind(self) -> int:
        """Records that were there at the last report and are not written yet."""
        return lag(self.offsets, self.latest)

    @property
    def late(self) -> str:
        """What was left out as late, in words; "" if nothing was."""
        counts = ((self.late_rows, "rows"), (self.late_groups, "groups"), (self.late_letters, "sent"))
        return ", ".join(f"{count:,} {what}" for count, what in counts if count)

    def save(self, state: State) -> None:
        state.write_progress(
            self.query,
            {
                "batch": self.batch,
                "timestamp": self.timestamp,
                "rows": self.rows,
                "rejected": self.rejected,
                "late_rows": self.late_rows,
                "late_groups": self.late_groups,
                "late_letters": self.late_letters,
                "late_handled": self.late_handled,
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
