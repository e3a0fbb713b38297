"""A schema from a sample of a topic's records: inferred once, printed, kept in the state directory.

Kept, so that a later start decodes as the first one did, whatever the newest records look like.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from kbroker.pipeline import sources
from kbroker.pipeline.errors import PipelineError
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
    sample = sources.read_sample(spark, pipeline, source, size).selectExpr("cast(value as string)")
    # pyspark's reader takes paths and RDDs of Python objects; Spark's own takes the frame as it is.
    encoder = spark._jvm.org.apache.spark.sql.Encoders.STRING()  # type: ignore[union-attr]
    reader = spark._jsparkSession.read().options(dict(source.decode.options))
    schema = reader.json(getattr(sample._jdf, "as")(encoder)).schema()
    columns = [name for name in schema.fieldNames() if name != "_corrupt_record"]
    if not columns:
        raise PipelineError(
            f"line {source.decode.line}: source {source.name!r}: no schema can be inferred, there is no JSON "
            "object among its records; give a schema, or wait for records"
        )
    return ", ".join(
        f"{field.name()} {field.dataType().sql()}" if field.name().isidentifier()
        else f"`{field.name()}` {field.dataType().sql()}"
        for field in schema.fields() if field.name() != "_corrupt_record"
    )  # fmt: skip
