"""One step: from views to a view. In a batch (replay) as in a stream."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from kbroker.pipeline.decoding import KAFKA_COLUMNS
from kbroker.pipeline.errors import FileProblem
from kbroker.pipeline.failures import refusal
from kbroker.pipeline.spec import Deduplicate, Join, Sql, Step, Watermark, Window

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

_COLUMN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def apply_step(spark: SparkSession, step: Step) -> DataFrame:
    """The frame of a step; what Spark refuses is told with the step's name and line."""
    from pyspark.errors import AnalysisException

    try:
        return _frame(spark, step)
    except AnalysisException as error:
        raise FileProblem(f"line {step.line}: step {step.name!r}: {refusal(error)}") from None


def with_watermark(frame: DataFrame, watermark: Watermark | None) -> DataFrame:
    if watermark is None:
        return frame
    return frame.withWatermark(watermark.column, watermark.delay)


def _frame(spark: SparkSession, step: Step) -> DataFrame:
    action = step.action
    if isinstance(action, Sql):
        return with_watermark(spark.sql(action.text), step.watermark)
    if isinstance(action, Window):
        # The watermark must stand before the aggregation that it bounds.
        return _window(with_watermark(spark.table(action.view), step.watermark), action)
    if isinstance(action, Deduplicate):
        return _deduplicated(with_watermark(spark.table(action.view), step.watermark), action)
    return with_watermark(_joined(spark, action), step.watermark)


def window_of(action: Window) -> Column:
    """The window, or the windows, of a row."""
    from pyspark.sql import functions as F

    return F.window(F.col(action.time), action.size, action.slide)


def _window(frame: DataFrame, action: Window) -> DataFrame:
    from pyspark.sql import functions as F

    aggregates = [F.expr(text).alias(name) for name, text in action.aggregate.items()]
    grouped = frame.groupBy(window_of(action).alias("window"), *action.group_by).agg(*aggregates)
    return grouped.select(
        F.col("window.start").alias("window_start"), F.col("window.end").alias("window_end"),
        *action.group_by, *action.aggregate,
    )  # fmt: skip


def _deduplicated(frame: DataFrame, action: Deduplicate) -> DataFrame:
    if frame.isStreaming:
        return frame.dropDuplicatesWithinWatermark(list(action.by))
    return frame.dropDuplicates(list(action.by))


def _joined(spark: SparkSession, action: Join) -> DataFrame:
    from pyspark.sql import functions as F

    left, right = spark.table(action.left).alias("left"), spark.table(action.right).alias("right")
    how = {"semi": "left_semi"}.get(action.how, action.how)
    if all(_COLUMN.fullmatch(column) for column in action.on):
        # A row has one origin: the left side's.
        return left.join(right.drop(*KAFKA_COLUMNS), list(action.on), how)
    condition = " and ".join(f"({each})" for each in action.on)
    joined = left.join(right, F.expr(condition), how)
    if how == "left_semi":
        return joined
    again = set(spark.table(action.left).columns)
    added = [F.col(f"right.`{name}`") for name in spark.table(action.right).columns if name not in again]
    return joined.select("left.*", *added)
