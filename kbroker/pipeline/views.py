"""All views of a job in one Spark session: sources, tables, then steps in their order."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kbroker.pipeline import decoding, inference, sources, steps
from kbroker.pipeline.errors import FileProblem
from kbroker.pipeline.failures import refusal
from kbroker.pipeline.spec import Pipeline, Source

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

ROWS, REJECTED = "rows", "rejected"


@dataclass(frozen=True, slots=True)
class Views:
    frames: dict[str, DataFrame]
    decoded: dict[str, DataFrame]
    """By source: good and rejected records, for dead letters."""


def build(
    spark: SparkSession,
    pipeline: Pipeline,
    read: Callable[[SparkSession, Source], DataFrame] | None = None,
    *,
    counted: bool = True,
    only: frozenset[str] | None = None,
) -> Views:
    """Views of streams, or of what `read` returns for a source. `only` names those to make; `counted` adds
    the counts of rows and rejected rows to every batch's progress."""
    from pyspark.errors import AnalysisException

    session = spark.newSession()
    views = Views({}, {})
    for source in pipeline.sources.values():
        if only is not None and source.name not in only:
            continue
        raw = read(session, source) if read is not None else sources.read_stream(session, pipeline, source)
        try:
            decoded = decoding.decode(raw, source, inference.schema_of(spark, pipeline, source))
        except AnalysisException as error:
            raise _refused(source.line, f"source {source.name!r}", error) from None
        if counted and decoded.isStreaming:
            decoded = _counted(decoded, source)
        views.decoded[source.name] = decoded
        try:
            frame = steps.with_watermark(decoding.accepted(decoded, source), source.watermark)
        except AnalysisException as error:
            raise _refused(source.line, f"source {source.name!r}", error) from None
        _register(views, source.name, frame)
    for table in pipeline.tables.values():
        if only is not None and table.name not in only:
            continue
        try:
            _register(views, table.name, sources.read_table(session, table))
        except AnalysisException as error:
            raise _refused(table.line, f"table {table.name!r}", error) from None
    for step in pipeline.steps.values():
        if only is None or step.name in only:
            _register(views, step.name, steps.apply_step(session, step))
    return views


def _register(views: Views, name: str, frame: DataFrame) -> None:
    frame.createOrReplaceTempView(name)
    views.frames[name] = frame


def _counted(decoded: DataFrame, source: Source) -> DataFrame:
    from pyspark.sql import functions as F

    return decoded.observe(
        source.name, F.count(F.lit(1)).alias(ROWS), F.count(F.col("_reason")).alias(REJECTED)
    )


def _refused(line: int, what: str, error: Exception) -> FileProblem:
    return FileProblem(f"line {line}: {what}: {refusal(error)}")
