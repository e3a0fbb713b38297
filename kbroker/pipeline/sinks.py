"""Where rows go. Each sink is one streaming query with a checkpoint of its own.

Delta and Parquet get every row exactly once: an append is committed together with its batch's number, an
upsert of the same batch changes nothing. A topic gets every row at least once: a batch that failed half way
is sent again.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from kbroker.pipeline import columns, graph
from kbroker.pipeline.decoding import KAFKA_COLUMNS
from kbroker.pipeline.errors import FileProblem, PipelineError
from kbroker.pipeline.schemas import quoted
from kbroker.pipeline.sources import kafka_options
from kbroker.pipeline.spec import Pipeline, Sink, Trigger

if TYPE_CHECKING:
    from delta.tables import DeltaMergeBuilder
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery


def start(pipeline: Pipeline, sink: Sink, frame: DataFrame, checkpoint: str) -> StreamingQuery:
    """Start the sink's query from where its checkpoint stands."""
    if sink.kind == "kafka":
        return start_kafka(
            pipeline, encoded(frame, sink), sink.target, sink.name, checkpoint, sink.trigger, sink.options,
            output_mode(pipeline, sink),
        )  # fmt: skip
    writer = frame.writeStream.queryName(sink.name).options(**sink.options)
    writer = writer.outputMode(output_mode(pipeline, sink)).trigger(**trigger_arguments(sink.trigger))
    writer = writer.option("checkpointLocation", checkpoint)
    if sink.kind == "console":
        return writer.format("console").start()
    if sink.mode == "upsert":
        create_table(frame, sink)
        return writer.foreachBatch(upserter(sink)).start()
    if sink.partition_by:
        writer = writer.partitionBy(*sink.partition_by)
    if sink.merge_schema:
        writer = writer.option("mergeSchema", "true")
    return writer.format(sink.kind).start(sink.target)


def start_kafka(
    pipeline: Pipeline,
    frame: DataFrame,
    topic: str,
    name: str,
    checkpoint: str,
    trigger: Trigger,
    options: Any = None,
    mode: str = "append",
) -> StreamingQuery:
    writer = frame.writeStream.queryName(name).format("kafka").outputMode(mode)
    writer = writer.options(**kafka_options(pipeline), **(options or {})).option("topic", topic)
    return writer.option("checkpointLocation", checkpoint).trigger(**trigger_arguments(trigger)).start()


def trigger_arguments(trigger: Trigger) -> dict[str, Any]:
    if trigger.kind == "available_now":
        return {"availableNow": True}
    return {"continuous" if trigger.kind == "continuous" else "processingTime": trigger.interval}


def output_mode(pipeline: Pipeline, sink: Sink) -> str:
    """An upsert of aggregates takes each change at once; everything else waits for final rows."""
    if sink.output_mode is not None:
        return sink.output_mode
    lineage = graph.sink_lineage(pipeline, sink)
    if sink.mode == "upsert" and lineage.aggregating is not None and lineage.stream_join is None:
        return "update"
    return "append"


def encoded(frame: DataFrame, sink: Sink) -> DataFrame:
    """The connector's columns, made from the view's."""
    from pyspark.sql import functions as F

    if sink.encode == "raw":
        return frame
    kept = [name for name in frame.columns if name not in KAFKA_COLUMNS]
    value = F.to_json(F.struct(*kept)).alias("value")
    if not sink.key:
        return frame.select(value)
    if len(sink.key) == 1:
        key = F.col(sink.key[0]).cast("string")
    else:
        key = F.to_json(F.struct(*sink.key))
    return frame.select(key.alias("key"), value)


# Delta


def create_table(frame: DataFrame, sink: Sink) -> None:
    from delta.tables import DeltaTable

    builder = DeltaTable.createIfNotExists(frame.sparkSession).location(sink.target).addColumns(frame.schema)
    if sink.partition_by:
        builder = builder.partitionedBy(*sink.partition_by)
    builder.execute()


def upserter(sink: Sink) -> Callable[[DataFrame, int], None]:
    def upsert(batch: DataFrame, _: int) -> None:
        upsert_rows(batch, sink)

    return upsert


def upsert_rows(rows: DataFrame, sink: Sink) -> None:
    """Insert rows whose key the table lacks; replace the others where they are not newer."""
    newest = latest_column(rows, sink)
    not_older = newest and f"t.{quoted(newest)} is null or s.{quoted(newest)} >= t.{quoted(newest)}"
    merge = _merge(one_per_key(rows, sink.key, newest), sink, sink.key)
    merge.whenMatchedUpdateAll(not_older).whenNotMatchedInsertAll().execute()


def insert_missing(rows: DataFrame, sink: Sink, key: tuple[str, ...]) -> None:
    """Insert all rows whose key the table lacks, also several of one key."""
    _merge(rows, sink, key).whenNotMatchedInsertAll().execute()


def _merge(rows: DataFrame, sink: Sink, key: tuple[str, ...]) -> DeltaMergeBuilder:
    from delta.tables import DeltaTable

    condition = " and ".join(f"t.{quoted(name)} <=> s.{quoted(name)}" for name in key)
    table = DeltaTable.forPath(rows.sparkSession, sink.target)
    merge = table.alias("t").merge(rows.alias("s"), condition)
    return merge.withSchemaEvolution() if sink.merge_schema else merge


def latest_column(frame: DataFrame, sink: Sink) -> str | None:
    return sink.latest_by or ("_offset" if "_offset" in frame.columns else None)


def one_per_key(rows: DataFrame, key: tuple[str, ...], newest: str | None) -> DataFrame:
    from pyspark.sql import functions as F

    if newest is None:
        return rows.dropDuplicates(list(key))
    whole = F.max_by(F.struct(*rows.columns), F.col(newest)).alias("row")
    return rows.groupBy(*(F.col(name).alias(f"__{name}") for name in key)).agg(whole).select("row.*")


def check_schema(spark: SparkSession, sink: Sink, frame: DataFrame) -> None:
    """Raise where the rows lack a column that the sink names, or no longer fit the table that is there."""
    from delta.tables import DeltaTable

    for option, names in columns.named_by(sink).items():
        for name in names:
            if not columns.has(tuple(frame.columns), name):
                said = columns.no_column(sink.view, name, frame.columns)
                raise FileProblem(
                    f"line {sink.lines.get(option, sink.line)}: sink {sink.name!r}: {option}: {said}"
                )
    if sink.kind != "delta" or not DeltaTable.isDeltaTable(spark, sink.target):
        return
    table = DeltaTable.forPath(spark, sink.target).toDF()
    there = {field.name.lower(): field.dataType.simpleString() for field in table.schema}
    problems = []
    for field in frame.schema:
        known, kind = there.get(field.name.lower()), field.dataType.simpleString()
        if known is None and not sink.merge_schema:
            problems.append(f"column {field.name} ({kind}) is not in the table")
        elif known is not None and known.lower() != kind.lower():
            problems.append(f"column {field.name} is {known} in the table, {kind} here")
    if problems:
        raise PipelineError(
            f"line {sink.line}: sink {sink.name!r}: its rows do not fit the table {sink.target}: "
            + "; ".join(problems)
            + ". Nothing was written. merge_schema: true adds columns; another type needs a new table."
        )
