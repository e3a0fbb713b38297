"""Write a range of time again into the tables of a job, without duplicates.

Records are chosen by their Kafka timestamps, and only those that the sink's checkpoint has passed: what the
stream has not read yet, it will write itself. What makes a second write harmless:

append    a record's rows are inserted unless the table has its _topic, _partition, _offset
upsert    rows are merged by the sink's key; an older row does not replace a newer one. Where nothing tells
          which is newer, or the first row of a key counts (deduplicate), only missing keys are inserted
windows   are computed from all that the topic still has; those that a record of the range belongs to are
          merged by the key (window_replay.py)

Each sink is written by one commit of its Delta table: a replay that is killed has written a sink or has not.
"""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from kbroker.pipeline import graph, ranges, sinks, sources, views, window_replay
from kbroker.pipeline.errors import NotReplayable, PipelineError
from kbroker.pipeline.kafka_client import KafkaClient
from kbroker.pipeline.ranges import Range
from kbroker.pipeline.spec import Deduplicate, Pipeline, Sink, Source
from kbroker.pipeline.state import State
from kbroker.pipeline.suggestions import suggestion

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

ORIGIN = ("_topic", "_partition", "_offset")


class Replayed(NamedTuple):
    sink: str
    records: int
    note: str = ""
    """Why it was left out, or what of it."""


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
    if upstream.windows:
        found = window_replay.replay(spark, pipeline, client, sink, committed.offsets, wanted)
        return Replayed(sink.name, found.records, found.note)
    count = 0

    def read(session: SparkSession, source: Source) -> DataFrame:
        nonlocal count
        records = ranges.bounds(client, ranges.of_source(source, committed.offsets), wanted)
        count += records.total
        return sources.read_range(session, pipeline, source, records.start, records.end)

    rows = views.build(spark, pipeline, read, only=upstream.names).frames[sink.view]
    return Replayed(sink.name, count, _write(rows, sink, upstream))


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
