"""Windows of a range of time, written again.

A record of the range belongs to windows of its event's time, which may lie far out of the range: those
windows are replayed. Each is computed from all its records, not only from those of the range, or its totals
would shrink. Where a topic has lost records, windows that began before its oldest one may have lost some of
theirs: they are left as they are, and the user is told how many.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from kbroker.pipeline import graph, ranges, sinks, sources, steps, views
from kbroker.pipeline.errors import NotReplayable
from kbroker.pipeline.kafka_client import KafkaClient, Offsets
from kbroker.pipeline.ranges import Range, Records
from kbroker.pipeline.spec import Pipeline, Sink, Source, Window

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_START, _END = "window_start", "window_end"
_NEVER_MS = 253_402_300_799_000  # the end of the year 9999
Reader = Callable[["SparkSession", Source], "DataFrame"]


class Done(NamedTuple):
    records: int
    """Read, to compute the windows."""
    note: str


def replay(
    spark: SparkSession, pipeline: Pipeline, client: KafkaClient, sink: Sink, passed: Offsets, wanted: Range
) -> Done:
    """Merge the windows of a sink that records of the range belong to; `passed` is how far its stream is."""
    from pyspark.sql import functions as F

    upstream = graph.sink_lineage(pipeline, sink)
    every: dict[str, Records] = {}
    some: dict[str, Records] = {}
    for source in upstream.sources:
        mine = ranges.of_source(source, passed)
        every[source.name] = ranges.bounds(client, mine)
        some[source.name] = ranges.bounds(client, mine, wanted)
    rows = views.build(spark, pipeline, _reader(pipeline, every), only=upstream.names).frames[sink.view]
    if not {_START, _END} <= set(rows.columns):
        raise NotReplayable(f"it needs the columns {_START} and {_END}")
    complete_since = max(
        _complete_since(spark, pipeline, source, every[source.name]) for source in upstream.sources
    )
    touched = _touched(spark, pipeline, upstream, _reader(pipeline, some)).persist()
    try:
        complete = F.col(_START) >= F.timestamp_millis(F.lit(complete_since))
        (found,) = touched.agg(
            F.count(F.lit(1)).alias("all"), F.count_if(complete).alias("complete")
        ).collect()
        if found["complete"]:
            chosen = touched.where(complete)
            sinks.upsert_rows(rows.join(chosen, [_START, _END], "left_semi"), sink)
    finally:
        touched.unpersist()
    return Done(
        sum(each.total for each in every.values()), _note(found["all"], found["complete"], complete_since)
    )


def _reader(pipeline: Pipeline, records: dict[str, Records]) -> Reader:
    def read(session: SparkSession, source: Source) -> DataFrame:
        return sources.read_range(session, pipeline, source, *records[source.name])

    return read


def _touched(spark: SparkSession, pipeline: Pipeline, upstream: graph.Lineage, read: Reader) -> DataFrame:
    """The windows (start, end) that the records that `read` returns belong to."""
    found: DataFrame | None = None
    for step in upstream.windows:  # none reads another: Spark streams no windows of windows
        action = step.action
        assert isinstance(action, Window)
        before = graph.lineage(pipeline, action.view)
        frame = views.build(spark, pipeline, read, only=before.names).frames[action.view]
        windows = frame.select(steps.window_of(action).alias("window"))
        spans = windows.selectExpr(f"window.start {_START}", f"window.end {_END}").distinct()
        found = spans if found is None else found.union(spans).distinct()
    assert found is not None
    return found


def _complete_since(spark: SparkSession, pipeline: Pipeline, source: Source, records: Records) -> int:
    """From when on (ms) a source has all its records: the newest of the first timestamps of partitions whose
    log no longer starts at 0; 0 if all do."""
    start, end = records
    if any(0 < start[topic][partition] == end[topic][partition] for topic in end for partition in end[topic]):
        return _NEVER_MS  # nothing that the stream has read is left
    cut = {
        topic: {partition: offset for partition, offset in each.items() if offset > 0}
        for topic, each in start.items()
        if any(each.values())
    }
    if not cut:
        return 0
    until = {topic: {partition: end[topic][partition] for partition in each} for topic, each in cut.items()}
    frame = sources.read_range(spark, pipeline, source, cut, until)
    firsts = frame.groupBy("topic", "partition").agg({"timestamp": "min"}).toDF("topic", "partition", "at")
    (row,) = firsts.selectExpr("max(unix_millis(at)) at").collect()
    return int(row["at"] or 0)


def _note(windows: int, complete: int, complete_since_ms: int) -> str:
    if complete == windows:
        return f"{windows:,} windows"
    left = f"{complete:,} of {windows:,} windows; the others are left as they are: "
    if complete_since_ms == _NEVER_MS:
        return f"{left}their records are gone"
    moment = datetime.datetime.fromtimestamp(complete_since_ms / 1000, datetime.UTC)
    return f"{left}they began before {moment:%Y-%m-%dT%H:%M:%SZ}, and older records are gone"
