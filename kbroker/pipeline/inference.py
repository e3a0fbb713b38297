"""A schema from a sample of a topic's records: inferred once, printed, kept in the state directory.

Kept, so that a later start decodes as the first one did, whatever the newest records look like.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from kbroker.pipeline import sources
from kbroker.pipeline.errors import PipelineError
from kbroker.pipeline.schemas import quoted
from kbroker.pipeline.spec import Pipeline, Source
from kbroker.pipeline.state import State

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

logger = logging.getLogger("kbroker.pipeline")


def schema_of(spark: SparkSession, pipeline: Pipeline, source: Source) -> str | None:
    """The DDL that a source is decoded with; None where its format needs none."""
    if source.decode.infer is None:
        return source.decode.schema
    kept = State(pipeline.state).schema_file(source.name)
    if kept.exists():
        return kept.read_text().strip()
    schema = _inferred(spark, pipeline, source, source.decode.infer)
    kept.parent.mkdir(parents=True, exist_ok=True)
    kept.write_text(schema + "\n")
    logger.info("source %s: schema inferred from its records, kept in %s:\n  %s", source.name, kept, schema)
    return schema


def _inferred(spark: SparkSession, pipeline: Pipeline, source: Source, size: int) -> str:
    decode = source.decode
    sample = sources.read_sample(spark, pipeline, source, size).selectExpr("cast(value as string)")
    # pyspark's reader takes paths and RDDs of Python objects; Spark's own takes the frame as it is.
    encoder = spark._jvm.org.apache.spark.sql.Encoders.STRING()  # type: ignore[union-attr]
    texts = getattr(sample._jdf, "as")(encoder)
    reader = spark._jsparkSession.read().options(dict(decode.options)).option("inferSchema", "true")
    schema = (reader.csv(texts) if decode.format == "csv" else reader.json(texts)).schema()
    fields = [(each.name(), each.dataType().sql()) for each in schema.fields()]
    fields = [(name, kind) for name, kind in fields if name != "_corrupt_record"]
    if not fields:
        what = "line" if decode.format == "csv" else "JSON object"
        raise PipelineError(
            f"line {decode.line}: source {source.name!r}: no schema can be inferred, there is no {what} "
            "among its records; give a schema, or wait for records"
        )
    if decode.format == "csv":
        fields = _named(source, [kind for _, kind in fields])
    return ", ".join(f"{name if name.isidentifier() else quoted(name)} {kind}" for name, kind in fields)


def _named(source: Source, kinds: list[str]) -> list[tuple[str, str]]:
    """Records have no header line: names are given, or c0, c1, …"""
    names = source.decode.columns or tuple(f"c{number}" for number in range(len(kinds)))
    if len(names) != len(kinds):
        raise PipelineError(
            f"line {source.decode.lines['columns']}: source {source.name!r}: columns names {len(names)}, "
            f"but its records have {len(kinds)}"
        )
    return list(zip(names, kinds, strict=True))
