"""Whether the parts of a declared job fit together: everything that Spark would refuse late, or do wrongly.

Each check yields problems with the line where the reader has to change something.
"""

from __future__ import annotations

from collections.abc import Iterator

from kbroker.pipeline import columns, graph, sql
from kbroker.pipeline.errors import Problem
from kbroker.pipeline.spec import Deduplicate, Join, Pipeline, Sink, Source, Sql, Step, Window
from kbroker.pipeline.state import State
from kbroker.pipeline.suggestions import suggestion

# The options of Spark 4.0's kafka format (its documentation), for readers and for writers.
READER_OPTIONS = frozenset(
    [
        "endingOffsets",
        "endingOffsetsByTimestamp",
        "endingTimestamp",
        "failOnDataLoss",
        "fetchOffset.numRetries",
        "fetchOffset.retryIntervalMs",
        "groupIdPrefix",
        "includeHeaders",
        "kafkaConsumer.pollTimeoutMs",
        "maxOffsetsPerTrigger",
        "maxRecordsPerPartition",
        "maxTriggerDelay",
        "minOffsetsPerTrigger",
        "minPartitions",
        "startingOffsetsByTimestamp",
        "startingOffsetsByTimestampStrategy",
        "startingTimestamp",
    ]
)
MANAGED_OPTIONS = {
    "kafka.bootstrap.servers": "bootstrap_servers",
    "subscribe": "topics",
    "subscribePattern": "pattern",
    "assign": "assign",
    "startingOffsets": "starting_offsets",
    "checkpointLocation": "state",
    "path": "delta or parquet",
    "topic": "kafka",
}
# What the connector itself refuses.
UNSUPPORTED_CLIENT_SETTINGS = frozenset(
    [
        "kafka.auto.offset.reset",
        "kafka.key.deserializer",
        "kafka.value.deserializer",
        "kafka.key.serializer",
        "kafka.value.serializer",
        "kafka.enable.auto.commit",
        "kafka.interceptor.classes",
    ]
)
# Formats whose values show the types of their columns.
INFERABLE = ("json", "csv")
# Continuous processing has no notion of "now" that a retry would see again.
NOT_CONTINUOUS = ("current_timestamp", "current_date", "now", "limit", "order", "union")


def check(pipeline: Pipeline) -> Iterator[Problem]:
    problems = [*_references(pipeline)]
    yield from problems
    if problems:
        return  # the rest follows references
    for source in pipeline.sources.values():
        yield from _source(source)
    for step in pipeline.steps.values():
        yield from _step(pipeline, step)
    for sink in pipeline.sinks.values():
        yield from _sink(pipeline, sink)
    yield from columns.problems(pipeline)
    yield from _late(pipeline)
    yield from _loops(pipeline)
    yield from _shared_targets(pipeline)


def warnings(pipeline: Pipeline) -> Iterator[Problem]:
    """What runs, but probably not as meant."""
    used: set[str] = set()
    for sink in pipeline.sinks.values():
        lineage = graph.sink_lineage(pipeline, sink)
        used |= lineage.names
        join = lineage.stream_join
        if join is not None and not lineage.watermarked:
            yield Problem(
                join.line, f"step {join.name!r} joins streams without a watermark: its state only grows"
            )
    for kind, entries in (("source", pipeline.sources), ("table", pipeline.tables), ("step", pipeline.steps)):
        for name, entry in entries.items():
            if name not in used:
                yield Problem(entry.line, f"{kind} {name!r} reaches no sink: it will not run")


def _references(pipeline: Pipeline) -> Iterator[Problem]:
    known = {*pipeline.sources, *pipeline.tables}
    for step in pipeline.steps.values():
        try:
            references = graph.inputs(step)
        except sql.Malformed as error:
            yield Problem(_sql_line(step, error.line), f"step {step.name!r}: {error}")
            known.add(step.name)
            continue
        for reference in references:
            if reference.name not in known:
                later = " (a step reads earlier steps only)" if reference.name in pipeline.steps else ""
                yield Problem(
                    _sql_line(step, reference.line),
                    f"step {step.name!r} reads {reference.name!r}, which is no source, table or earlier step"
                    f"{later or suggestion(reference.name, known)}",
                )
        known.add(step.name)
    for sink in pipeline.sinks.values():
        if sink.view not in {*pipeline.sources, *pipeline.steps}:
            said = "is a table" if sink.view in pipeline.tables else "is no source or step"
            yield Problem(
                sink.lines["from"],
                f"sink {sink.name!r} is from {sink.view!r}, which {said}"
                f"{suggestion(sink.view, [*pipeline.sources, *pipeline.steps])}",
            )


def _sql_line(step: Step, offset: int) -> int:
    """The text of `sql: |` begins on the line below."""
    if not isinstance(step.action, Sql):
        return step.action_line
    return step.action_line + offset + (1 if "\n" in step.action.text else 0)


def _source(source: Source) -> Iterator[Problem]:
    where = source.lines.get("options", source.line)
    for name in source.options:
        if name in MANAGED_OPTIONS:
            yield Problem(where, f"options: {name} is set by {MANAGED_OPTIONS[name]!r}")
        elif name in UNSUPPORTED_CLIENT_SETTINGS:
            yield Problem(where, f"options: Spark does not let {name} be set")
        elif not name.startswith("kafka.") and name not in READER_OPTIONS:
            yield Problem(
                where, f"options: Spark's kafka format has no {name!r}{suggestion(name, READER_OPTIONS)}"
            )
        elif name.startswith("ending"):
            yield Problem(where, f"options: {name} is for batch reads only; see 'kbroker pipeline replay'")
    offsets = source.starting_offsets
    where = source.lines.get("starting_offsets", source.line)
    if isinstance(offsets, dict):
        for topic in offsets:
            if source.named_topics() and topic not in source.named_topics():
                yield Problem(where, f"starting_offsets: {topic!r} is not among the topics")
    elif offsets not in ("earliest", "latest"):
        yield Problem(where, f"starting_offsets: earliest, latest or offsets by topic, not {offsets!r}")
    yield from _decode(source)
    if source.dead_letter and source.on_reject != "fail":
        yield Problem(source.lines["on_reject"], "on_reject and dead_letter exclude each other")


def _decode(source: Source) -> Iterator[Problem]:
    decode = source.decode
    if decode.infer and decode.format not in INFERABLE:
        needed = {"avro": "avro needs avro_schema"}.get(decode.format, f"{decode.format} has no schema")
        yield Problem(decode.lines["infer"], f"decode: infer is for json and csv; {needed}")
        return
    if decode.columns and (decode.format != "csv" or not decode.infer):
        yield Problem(decode.lines["columns"], "decode: columns is for csv with infer; else see schema")
    if decode.format == "avro":
        if decode.avro_schema is None:
            yield Problem(decode.line, "decode: avro needs avro_schema")
        if decode.schema:
            yield Problem(decode.line, "decode: the schema of avro is avro_schema")
        return
    if decode.avro_schema or decode.confluent_header:
        yield Problem(decode.line, "decode: avro_schema and confluent_header are for avro")
    given = sum(each is not None for each in (decode.schema, decode.infer))
    if decode.format in INFERABLE:
        if given != 1:
            yield Problem(decode.line, f"decode: {decode.format} needs one of schema, json_schema, infer")
        if decode.format == "csv" and decode.rules:
            yield Problem(decode.line, "decode: csv needs schema or infer: json_schema is for json")
    elif given:
        yield Problem(decode.line, f"decode: {decode.format} has no schema")


def _step(pipeline: Pipeline, step: Step) -> Iterator[Problem]:
    action = step.action
    upstream = graph.lineage(pipeline, step.name)
    if isinstance(action, Window | Deduplicate) and not upstream.watermarked:
        kind = "window" if isinstance(action, Window) else "deduplicate"
        yield Problem(
            step.line, f"step {step.name!r}: {kind} needs a watermark, on the step or on its source"
        )
    if isinstance(action, Window) and not action.aggregate:
        yield Problem(step.action_line, f"step {step.name!r}: a window needs aggregates")
    if isinstance(action, Deduplicate) and not action.by:
        yield Problem(step.action_line, f"step {step.name!r}: deduplicate needs the columns of its key")
    if isinstance(action, Join):
        if action.left in pipeline.tables:
            yield Problem(step.action_line, f"step {step.name!r}: a table is the right side of a join")
        if action.right in pipeline.tables and action.how in ("right", "full"):
            yield Problem(
                step.action_line, f"step {step.name!r}: Spark cannot {action.how}-join a stream with a table"
            )
        outer = action.how in ("left", "right", "full", "semi")
        if action.right not in pipeline.tables and outer and not upstream.watermarked:
            yield Problem(
                step.action_line, f"step {step.name!r}: a {action.how} join of two streams needs watermarks"
            )


def _sink(pipeline: Pipeline, sink: Sink) -> Iterator[Problem]:
    lineage = graph.sink_lineage(pipeline, sink)

    def problem(option: str, message: str) -> Problem:
        return Problem(sink.lines.get(option, sink.line), f"sink {sink.name!r}: {message}")

    if not lineage.sources:
        yield problem("from", f"{sink.view!r} reads no topic, only tables")
    if sink.mode == "upsert":
        if sink.kind != "delta":
            yield problem("mode", f"only a Delta table can be upserted, not {sink.kind}")
        if not sink.key:
            yield problem("mode", "an upsert needs a key")
        if sink.output_mode == "complete":
            yield problem("output_mode", "an upsert takes updates, not the complete result")
    elif sink.latest_by:
        yield problem("latest_by", "latest_by is for mode: upsert")
    if sink.key and sink.mode != "upsert" and sink.kind != "kafka":
        yield problem("key", "a key is for mode: upsert, or for a topic")
    if sink.partition_by and sink.kind not in ("delta", "parquet"):
        yield problem("partition_by", f"{sink.kind} is not partitioned by columns")
    if sink.merge_schema and sink.kind != "delta":
        yield problem("merge_schema", "merge_schema is for Delta tables")
    for name in sink.options:
        if name in MANAGED_OPTIONS:
            yield problem("options", f"{name} is set by {MANAGED_OPTIONS[name]!r}")
    yield from _output_mode(sink, lineage, problem)
    if sink.trigger.kind == "continuous":
        yield from _continuous(sink, lineage, problem)


def _output_mode(sink: Sink, lineage: graph.Lineage, problem: object) -> Iterator[Problem]:
    assert callable(problem)
    aggregating = lineage.aggregating
    mode = sink.output_mode or "append"
    if mode == "complete" and aggregating is None:
        yield problem("output_mode", "complete needs an aggregation")
    if mode != "append" and sink.kind == "parquet":
        yield problem("output_mode", "Parquet files can only be appended to")
    if mode == "update" and sink.kind == "delta" and sink.mode == "append":
        yield problem("output_mode", "a Delta table takes updates only with mode: upsert")
    if mode == "append" and sink.mode == "append" and aggregating is not None and not lineage.watermarked:
        yield problem(
            "mode",
            f"step {aggregating.name!r} aggregates without a watermark, so no row is ever final: "
            "add a watermark, or mode: upsert with a key, or output_mode: complete",
        )


def _continuous(sink: Sink, lineage: graph.Lineage, problem: object) -> Iterator[Problem]:
    assert callable(problem)
    where = "trigger"
    if sink.kind not in ("kafka", "console"):
        yield problem(where, f"a continuous trigger writes to a topic or the console, not to {sink.kind}")
    if len(lineage.sources) > 1 or lineage.tables:
        yield problem(where, "a continuous trigger reads one source and no table")
    for step in lineage.steps:
        if not isinstance(step.action, Sql):
            kind = type(step.action).__name__.lower()
            yield problem(where, f"a continuous trigger allows no {kind} (step {step.name!r})")
            continue
        query = sql.analyse(step.action.text)
        refused = [word for word in NOT_CONTINUOUS if word in query.words]
        if query.aggregates or query.joins or refused:
            what = refused[0].upper() if refused else "aggregates" if query.aggregates else "joins"
            yield problem(where, f"a continuous trigger allows no {what} (step {step.name!r})")


def _late(pipeline: Pipeline) -> Iterator[Problem]:
    """Whether late records can be sent where they are to be."""
    operators = [each for sink in pipeline.sinks.values() for each in graph.late_operators(pipeline, sink)]
    entries: list[Source | Step] = [*pipeline.sources.values(), *pipeline.steps.values()]
    for entry in entries:
        watermark = entry.watermark
        if watermark is None or watermark.late != "dead_letter":
            continue
        if not State(pipeline.state).local:
            yield Problem(watermark.line, "watermark: late: dead_letter needs a local state directory")
        for source in graph.lineage(pipeline, entry.name).sources:
            if source.dead_letter is None:
                yield Problem(
                    watermark.line,
                    f"watermark: late: dead_letter needs a dead_letter topic on source {source.name!r}",
                )
        if not any(_reads(pipeline, each, entry.name) for each in operators):
            yield Problem(
                watermark.line,
                "watermark: late: dead_letter would send nothing: no deduplicate and no window of a sink "
                f"reads {entry.name!r} (late rows of joins and of aggregates in SQL can only be counted)",
            )


def _reads(pipeline: Pipeline, operator: graph.LateOperator, name: str) -> bool:
    return name == operator.step.name or name in graph.lineage(pipeline, operator.view).names


def _loops(pipeline: Pipeline) -> Iterator[Problem]:
    for sink in pipeline.sinks.values():
        if sink.kind == "kafka":
            for source in graph.sink_lineage(pipeline, sink).sources:
                if sink.target in source.named_topics():
                    yield Problem(
                        sink.lines["kafka"], f"sink {sink.name!r} writes to the topic it reads: a loop"
                    )
    for source in pipeline.sources.values():
        if source.dead_letter in source.named_topics():
            yield Problem(source.lines["dead_letter"], "dead_letter is a topic that is read: a loop")


def _shared_targets(pipeline: Pipeline) -> Iterator[Problem]:
    owners: dict[str, str] = {}
    for sink in pipeline.sinks.values():
        if sink.kind in ("delta", "parquet"):
            if sink.target in owners:
                yield Problem(
                    sink.lines[sink.kind], f"sinks {owners[sink.target]!r} and {sink.name!r} share a table"
                )
            owners.setdefault(sink.target, sink.name)
