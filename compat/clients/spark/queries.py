"""What the tests do with Spark's frames and queries."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from compat.harness.waiting import eventually

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class Table:
    """A Parquet table that a streaming query fills, with its checkpoint beside it."""

    def __init__(self, spark: SparkSession, directory: Path) -> None:
        self._spark = spark
        self.path = directory / "table"
        self.checkpoint = directory / "checkpoint"

    def start(self, frame: DataFrame, **trigger: Any) -> Any:
        values = frame.selectExpr("cast(value as string) value")
        writer = values.writeStream.format("parquet").option("checkpointLocation", str(self.checkpoint))
        return writer.trigger(**(trigger or {"availableNow": True})).start(str(self.path))

    def fill(self, frame: DataFrame) -> Any:
        """Run until everything that is there now is in the table; returns the query, for its progress."""
        query = self.start(frame)
        query.awaitTermination()
        return query

    def values(self) -> list[str]:
        if not self.path.exists():
            return []
        rows = self._spark.read.schema("value string").parquet(str(self.path)).collect()
        return sorted(row.value for row in rows)


def values(frame: DataFrame) -> list[str]:
    """The values of a Kafka read as text, in the order of topic, partition and offset."""
    rows = frame.selectExpr("topic", "partition", "offset", "cast(value as string) v").collect()
    return [row.v for row in sorted(rows)]


def coordinates(frame: DataFrame) -> list[tuple[int, int, str]]:
    """(partition, offset, value) of every row, in order."""
    rows = frame.selectExpr("partition", "offset", "cast(value as string) v").collect()
    return sorted((row.partition, row.offset, row.v) for row in rows)


def error_of(query: Any, seconds: float = 60) -> BaseException:
    """What made a query fail."""
    from pyspark.errors import StreamingQueryException

    try:
        query.awaitTermination(seconds)
    except StreamingQueryException as error:
        return error
    raise AssertionError(f"no error within {seconds:g} s")


def java_causes(error: BaseException) -> list[tuple[str, str | None]]:
    """(class, Spark's error class or None) of what Java threw, and of each cause down to the first."""
    thrown = getattr(error, "java_exception", None) or getattr(error, "_origin", None)
    found = []
    while thrown is not None:
        methods = {method.getName() for method in thrown.getClass().getMethods()}
        condition = thrown.getErrorClass() if "getErrorClass" in methods else None
        found.append((thrown.getClass().getName(), condition))
        thrown = thrown.getCause()
    return found


def batches(query: Any) -> list[int]:
    """The sizes of a query's batches that had rows."""
    return [size for progress in query.recentProgress if (size := progress["numInputRows"])]


def wait_for_rows(table: Table, count: int, seconds: float = 90) -> list[str]:
    return eventually(table.values, lambda found: len(found) >= count, seconds)


def texts(options: dict[str, Any]) -> dict[str, str]:
    """Options as text: offsets and assignments given as a dict become JSON."""
    return {
        name.replace("__", "."): json.dumps(value) if isinstance(value, dict | bool) else str(value)
        for name, value in options.items()
    }
