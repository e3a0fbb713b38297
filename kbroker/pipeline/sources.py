"""Topics as Spark frames, with the connector's own columns and the records' headers."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from kbroker.pipeline.spec import Pipeline, Source, Table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from kbroker.pipeline.kafka_client import Offsets


def kafka_options(pipeline: Pipeline) -> dict[str, str]:
    """What every reader and writer of the connector is told."""
    return {
        "kafka.bootstrap.servers": pipeline.bootstrap_servers,
        **{f"kafka.{name}": value for name, value in pipeline.kafka.items()},
    }


def reader_options(pipeline: Pipeline, source: Source) -> dict[str, str]:
    chosen = {**kafka_options(pipeline), "includeHeaders": "true", **_selection(source)}
    offsets: Any = source.starting_offsets
    by_time = {name for name in source.options if name.startswith("starting")}
    if not by_time:
        chosen["startingOffsets"] = offsets if isinstance(offsets, str) else json.dumps(offsets)
    return {**chosen, **source.options}


def read_stream(spark: SparkSession, pipeline: Pipeline, source: Source) -> DataFrame:
    return spark.readStream.format("kafka").options(**reader_options(pipeline, source)).load()


def read_range(
    spark: SparkSession, pipeline: Pipeline, source: Source, start: Offsets, end: Offsets
) -> DataFrame:
    """The records from `start` to before `end`, as a batch."""
    only_streams = ("starting", "maxOffsets", "minOffsets", "maxTrigger")
    more = {name: value for name, value in source.options.items() if not name.startswith(only_streams)}
    reader = spark.read.format("kafka").options(**kafka_options(pipeline), includeHeaders="true", **more)
    assignment = {topic: sorted(partitions) for topic, partitions in end.items()}
    return reader.options(
        assign=json.dumps(assignment), startingOffsets=json.dumps(start), endingOffsets=json.dumps(end)
    ).load()


def read_sample(spark: SparkSession, pipeline: Pipeline, source: Source, size: int) -> DataFrame:
    """The newest records that have a value, at most `size`."""
    reader = spark.read.format("kafka").options(**kafka_options(pipeline), **_selection(source))
    return reader.load().where("value is not null").orderBy("timestamp", ascending=False).limit(size)


def read_table(spark: SparkSession, table: Table) -> DataFrame:
    reader = spark.read.format(table.format).options(**table.options)
    if table.schema is not None:
        reader = reader.schema(table.schema)
    return reader.load(table.path)


def _selection(source: Source) -> dict[str, str]:
    if source.pattern is not None:
        return {"subscribePattern": source.pattern}
    if source.assign is not None:
        return {"assign": json.dumps(source.assign)}
    return {"subscribe": ",".join(source.topics)}
