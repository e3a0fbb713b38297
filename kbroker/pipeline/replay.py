"""Write a range of time again into the tables of a job, without duplicates.

Records are chosen by their Kafka timestamps, and only those that the sink's checkpoint has passed: what the
stream has not read yet, it will write itself. What makes a second write harmless:

upsert    rows are merged by the sink's key; an older row does not replace a newer one
append    a row is inserted unless the table has its _topic, _partition, _offset
windows   are computed from all that the topic still has; those that overlap the range are merged by the key
"""

from __future__ import annotations

import datetime
import re
from typing import TYPE_CHECKING, NamedTuple

from kbroker.pipeline import graph, sinks, sources, views
from kbroker.pipeline.errors import PipelineError
from kbroker.pipeline.kafka_client import KafkaClient, Offsets
from kbroker.pipeline.spec import Deduplicate, Pipeline, Sink, Source
from kbroker.pipeline.state import State

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

ORIGIN = ("_topic", "_partition", "_offset")


class Range(NamedTuple):
    start_ms: int
    end_ms: int


class Replayed(NamedTuple):
    sink: str
    records: int
    reason: str = ""
    """Why it was left out."""


def parse_time(text: str) -> int:
    """ISO 8601 (UTC unless it says otherwise) or milliseconds since 1970."""
    if text.isdecimal():
        return int(text)
    try:
        moment = datetime.datetime.fromisoformat(text)
    except ValueError:
        raise PipelineError(f"{text!r} is no time: 2026-01-31T10:00:00 or milliseconds since 1970") from None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=datetime.UTC)
    return int(moment.timestamp() * 1000)


def refusal(pipeline: Pipeline, sink: Sink) -> str | None:
    """Why a sink cannot be replayed; None if it can."""
    if sink.kind != "delta":
        return f"{sink.kind} cannot tell what it has already"
    upstream = graph.sink_lineage(pipeline, sink)
    if upstream.aggregating is not None:
        if not upstream.windows:
            return f"step {upstream.aggregating.name!r} aggregates in SQL, without windows to replay"
        return None if sink.mode == "upsert" else "windows need mode: upsert"
    if upstream.stream_join is not None:
        return f"step {upstream.stream_join.name!r} joins two streams"
    if sink.mode == "append" and any(isinstance(step.action, Deduplicate) for step in upstream.steps):
        return "deduplicated rows need mode: upsert"
    return None


def replay(
    spark: SparkSession,
    pipeline: Pipeline,
    client: KafkaClient,
    wanted: Range,
    names: list[str] | None = None,
) -> list[Replayed]:
    """Replay into the named sinks, or into all that can be."""
    for name in names or ():
        if name not in pipeline.sinks:
            raise PipelineError(f"there is no sink {name!r}")
    with State(pipeline.state).locked():
        return [
            _replay_sink(spark, pipeline, client, sink, wanted, strict=names is not None)
            for sink in pipeline.sinks.values()
            if names is None or sink.name in names
        ]


def _replay_sink(
    spark: SparkSession, pipeline: Pipeline, client: KafkaClient, sink: Sink, wanted: Range, *, strict: bool
) -> Replayed:
    reason = refusal(pipeline, sink)
    committed = State(pipeline.state).committed(sink.name)
    if reason is None and committed is None:
        reason = "it has not run yet"
    if reason is not None or committed is None:
        if strict:
            raise PipelineError(f"sink {sink.name!r} cannot be replayed: {reason}")
        return Replayed(sink.name, 0, reason or "")
    upstream = graph.sink_lineage(pipeline, sink)
    windowed = bool(upstream.windows)
    count = 0

    def read(session: SparkSession, source: Source) -> DataFrame:
        nonlocal count
        passed = _of(source, committed.offsets)
        start, end = _bounds(client, passed, None if windowed else wanted)
        count += sum(end[t][p] - start[t][p] for t in end for p in end[t])
        return sources.read_range(session, pipeline, source, start, end)

    rows = views.build(spark, pipeline, read, only=upstream.names).frames[sink.view]
    if windowed:
        rows = _overlapping(rows, sink, wanted)
    _write(rows, sink)
    return Replayed(sink.name, count)


def _of(source: Source, offsets: Offsets) -> Offsets:
    """The part of a checkpoint that is this source's: by its topics, or its pattern."""
    if source.pattern is not None:
        return {topic: each for topic, each in offsets.items() if re.fullmatch(source.pattern, topic)}
    return {topic: each for topic, each in offsets.items() if topic in source.named_topics()}


def _bounds(client: KafkaClient, passed: Offsets, wanted: Range | None) -> tuple[Offsets, Offsets]:
    """Start and end per partition: within the log, the range of time, and what the stream has passed."""
    log_start = client.start_offsets(passed)
    first = client.offsets_at(passed, wanted.start_ms) if wanted else log_start
    last = client.offsets_at(passed, wanted.end_ms) if wanted else passed
    start: Offsets = {}
    end: Offsets = {}
    for topic, partitions in passed.items():
        for partition, limit in partitions.items():
            until = last[topic][partition]
            until = limit if until < 0 else min(until, limit)
            since = first[topic][partition]
            since = until if since < 0 else min(max(since, log_start[topic][partition]), until)
            start.setdefault(topic, {})[partition] = since
            end.setdefault(topic, {})[partition] = max(since, until)
    return start, end


def _overlapping(rows: DataFrame, sink: Sink, wanted: Range) -> DataFrame:
    from pyspark.sql import functions as F

    if not {"window_start", "window_end"} <= set(rows.columns):
        raise PipelineError(f"sink {sink.name!r}: a replay needs its columns window_start and window_end")
    since, until = (F.timestamp_millis(F.lit(each)) for each in wanted)
    return rows.where((F.col("window_end") > since) & (F.col("window_start") < until))


def _write(rows: DataFrame, sink: Sink) -> None:
    if sink.mode == "upsert":
        sinks.merge_rows(rows, sink, sink.key, replace=True)
        return
    if not set(ORIGIN) <= set(rows.columns):
        raise PipelineError(
            f"sink {sink.name!r}: to be replayed without duplicates it needs mode: upsert with a key, or the "
            f"columns {', '.join(ORIGIN)}"
        )
    sinks.merge_rows(rows, sink, ORIGIN, replace=False)
