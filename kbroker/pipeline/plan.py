"""What a job would do, without doing it: `run --dry-run`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kbroker.pipeline import graph, inference, runner, sinks
from kbroker.pipeline.spec import Pipeline
from kbroker.pipeline.state import State

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def describe(spark: SparkSession, pipeline: Pipeline) -> str:
    """The resolved job: sources with their schemas, sinks with their rows. Spark analyses every step."""
    lines = [f"pipeline {pipeline.name}, Kafka at {pipeline.bootstrap_servers}, state in {pipeline.state}"]
    for source in pipeline.sources.values():
        topics = source.pattern or ", ".join(source.named_topics())
        lines.append(f"source {source.name}: {topics}, from {source.starting_offsets}")
        lines.append(f"  decode {source.decode.format}: {_schema(spark, pipeline, source.name)}")
        lines += [f"  expect {rule.expect}" for rule in (*source.decode.rules, *source.rules)]
        rejected = f"to topic {source.dead_letter}" if source.dead_letter else source.on_reject
        lines.append(f"  rejected records: {rejected}")
    for sink in pipeline.sinks.values():
        frame = runner.sink_frame(spark, pipeline, sink)
        sinks.check_schema(spark, sink, frame)
        upstream = graph.sink_lineage(pipeline, sink)
        way = " → ".join([*(each.name for each in upstream.sources), *(step.name for step in upstream.steps)])
        target = f"{sink.kind} {sink.target}".strip()
        mode = f"{sink.mode} by {', '.join(sink.key)}" if sink.mode == "upsert" else sink.mode
        lines.append(f"sink {sink.name}: {way} → {target} ({mode}, {sinks.output_mode(pipeline, sink)} rows)")
        lines.append(f"  every {sink.trigger}" if sink.trigger.kind == "interval" else f"  {sink.trigger}")
        committed = State(pipeline.state).committed(sink.name)
        lines.append(f"  continues after batch {committed.batch}" if committed else "  starts anew")
        lines += [f"  {field.name}: {field.dataType.simpleString()}" for field in frame.schema]
    return "\n".join(lines)


def _schema(spark: SparkSession, pipeline: Pipeline, name: str) -> str:
    source = pipeline.sources[name]
    if source.decode.format == "avro":
        return "its Avro schema"
    kind = "binary" if source.decode.format == "raw" else "string"
    return inference.schema_of(spark, pipeline, source) or f"value {kind}"
