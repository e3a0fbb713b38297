"""Write a range of time again into the tables of a job, without duplicates.

Records are chosen by their Kafka timestamps, and only those that the sink's checkpoint has passed: what the
stream has not read yet, it will write itself. What makes a second write harmless:

append    a record's rows are inserted unless the table has its _topic, _partition, _offset
upsert    rows are merged by the sink's key; an older row does not replace a newer one. Where nothing tells
          which is newer, or the first row of a key counts (deduplicate), only missing keys are inserted
windows   are computed from all that the topic still has; those that overlap the range are merged by the key.
          Windows that began before the oldest record of a topic that has lost some are left as they are

Each sink is written by one commit of its Delta table: a replay that is killed has written a sink or has not.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from kbroker.pipeline import graph, sinks, sources, views
from kbroker.pipeline.errors import PipelineError
from kbroker.pipeline.kafka_client import KafkaClient, Offsets
from kbroker.pipeline.spec import Deduplicate, Pipeline, Sink, Source
from kbroker.pipeline.state import State
from kbroker.pipeline.suggestions import suggestion

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

ORIGIN = ("_topic", "_partition", "_offset")


class Range(NamedTuple):
    start_ms: int
    end_ms: int


class Replayed(NamedTuple):
    sink: str
    records: int
    note: str = ""
    """Why it was left out, or what of it."""


class NotReplayable(PipelineError):
    """Of one sink; known only when Spark has analysed its rows."""


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


def choose(pipeline: Pipeline, names: list[str] | None = None) -> dict[str, str]:
    """The sinks to replay and why one is left out ("" if it is not); known without Spark.

    Raises where a named sink, or every sink, cannot be replayed.
    """
    for name in names or ():
        if name not in pipeline.sinks:
            raise PipelineError(f"there is no sink {name!r}{suggestion(name, pipeline.sinks)}")
    state = State(pipeline.state)
    if not state.local:
        raise PipelineError(f"the state {state.location} is not a local directory: replay cannot read it")
    found = {}
    for sink in pipeline.sinks.values():
        if names is None or sink.name in names:
            never_ran = "" if state.committed(sink.name) else "it has not run yet"
            found[sink.name] = refusal(pipeline, sink) or never_ran
    refused = [f"sink {name!r} cannot be replayed: {reason}" for name, reason in found.items() if reason]
    if refused and (names is not None or len(refused) == len(found)):
        raise PipelineError("\n".join(refused))
    return found


def replay(
    spark: SparkSession, pipeline: Pipeline, client: KafkaClient, wanted: Range, chosen: Mapping[str, str]
) -> list[Replayed]:
    """Replay what `choose` has chosen; the caller holds the state's lock."""
    done = []
    for name, reason in chosen.items():
        try:
            if reason:
                raise NotReplayable(reason)
            done.append(_replay_sink(spark, pipeline, client, pipeline.sinks[name], wanted))
        except NotReplayable as error:
            if len(chosen) == 1:
                raise PipelineError(f"sink {name!r} cannot be replayed: {error}") from None
            done.append(Replayed(name, 0, f"left out: {error}"))
    return done


def _replay_sink(
    spark: SparkSession, pipeline: Pipeline, client: KafkaClient, sink: Sink, wanted: Range
) -> Replayed:
    committed = State(pipeline.state).committed(sink.name)
    assert committed is not None
    upstream = graph.sink_lineage(pipeline, sink)
    windowed = bool(upstream.windows)
    count, complete_since = 0, wanted.start_ms

    def read(session: SparkSession, source: Source) -> DataFrame:
        nonlocal count, complete_since
        passed = _of(source, committed.offsets)
        start, end = _bounds(client, passed, None if windowed else wanted)
        count += sum(end[t][p] - start[t][p] for t in end for p in end[t])
        if windowed:
            if any(0 < start[t][p] == end[t][p] for t in end for p in end[t]):
                complete_since = wanted.end_ms  # nothing that the stream has read is left
            else:
                oldest = _oldest_after_loss(session, pipeline, source, start, end)
                complete_since = max(complete_since, oldest)
        return sources.read_range(session, pipeline, source, start, end)

    rows = views.build(spark, pipeline, read, only=upstream.names).frames[sink.view]
    if not windowed:
        return Replayed(sink.name, count, _write(rows, sink, upstream))
    sinks.upsert_rows(_overlapping(rows, wanted, complete_since), sink)
    moment = datetime.datetime.fromtimestamp(complete_since / 1000, datetime.UTC)
    incomplete = f"windows that began before {moment:%Y-%m-%dT%H:%M:%SZ} left as they are: records are gone"
    return Replayed(sink.name, count, incomplete if complete_since > wanted.start_ms else "")


def _oldest_after_loss(
    spark: SparkSession, pipeline: Pipeline, source: Source, start: Offsets, end: Offsets
) -> int:
    """The newest of the first timestamps (ms) of partitions whose log no longer starts at 0; 0 if all do."""
    cut = {
        topic: {partition: offset for partition, offset in each.items() if offset > 0}
        for topic, each in start.items()
        if any(each.values())
    }
    if not cut:
        return 0
    until = {topic: {partition: end[topic][partition] for partition in each} for topic, each in cut.items()}
    records = sources.read_range(spark, pipeline, source, cut, until)
    firsts = records.groupBy("topic", "partition").agg({"timestamp": "min"}).toDF("topic", "partition", "at")
    (row,) = firsts.selectExpr("max(unix_millis(at)) at").collect()
    return int(row["at"] or 0)


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


def _overlapping(rows: DataFrame, wanted: Range, complete_since_ms: int) -> DataFrame:
    from pyspark.sql import functions as F

    if not {"window_start", "window_end"} <= set(rows.columns):
        raise NotReplayable("it needs the columns window_start and window_end")
    since, until, complete = (F.timestamp_millis(F.lit(each)) for each in (*wanted, complete_since_ms))
    rows = rows.where((F.col("window_end") > since) & (F.col("window_start") < until))
    return rows.where(F.col("window_start") >= complete) if complete_since_ms > wanted.start_ms else rows


def _write(rows: DataFrame, sink: Sink, upstream: graph.Lineage) -> str:
    """Returns what the user should know about it."""
    if sink.mode == "append":
        if not set(ORIGIN) <= set(rows.columns):
            raise NotReplayable(f"it needs mode: upsert with a key, or the columns {', '.join(ORIGIN)}")
        sinks.insert_missing(rows, sink, ORIGIN)
        return ""
    deduplicated = any(isinstance(step.action, Deduplicate) for step in upstream.steps)
    if sinks.latest_column(rows, sink) is not None and not deduplicated:
        sinks.upsert_rows(rows, sink)
        return ""
    sinks.insert_missing(sinks.one_per_key(rows, sink.key, sinks.latest_column(rows, sink)), sink, sink.key)
    return "rows whose key is there left as they are" + ("" if deduplicated else ": no latest_by, no _offset")
