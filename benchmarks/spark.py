"""Spark on kbroker and on Apache Kafka, side by side in one run: `python -m benchmarks.spark --rows 5000000`.

For each broker: write rows of 100 bytes with Spark's Kafka sink, read them in a batch, and stream them into a
Delta table. The brokers take turns, the best of the rounds counts; the ratio is kbroker's rate over Kafka's.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from confluent_kafka.admin import AdminClient, NewTopic

from benchmarks.compare.brokers import BenchKafka, BenchKbroker, Broker, Meter
from kbroker.pipeline.render import table
from kbroker.pipeline.session import create_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

VALUE_BYTES = 100


class Load:
    """The three jobs on one broker; each returns the rows it moved."""

    def __init__(
        self, spark: SparkSession, broker: Broker, rows: int, partitions: int, directory: Path
    ) -> None:
        self._spark = spark
        self._rows = rows
        self._topic = "spark-rows"
        self._directory = directory
        self._options = {"kafka.bootstrap.servers": broker.bootstrap}
        admin = AdminClient({"bootstrap.servers": broker.bootstrap, "log_level": 0})
        for answer in admin.create_topics([NewTopic(self._topic, partitions)]).values():
            answer.result(60)
        self._written = 0

    def write(self) -> int:
        frame = self._spark.range(self._rows).selectExpr(
            "cast(id as string) key", f"rpad(cast(id as string), {VALUE_BYTES}, 'x') value"
        )
        frame.write.format("kafka").options(**self._options).option("topic", self._topic).save()
        self._written += self._rows
        return self._rows

    def read(self) -> int:
        reader = self._spark.read.format("kafka").options(**self._options, subscribe=self._topic)
        read = reader.load().selectExpr("sum(length(value)) bytes").collect()[0].bytes
        assert read == self._written * VALUE_BYTES, f"{read} bytes of {self._written} rows"
        return self._written

    def stream_into_delta(self) -> int:
        shutil.rmtree(self._directory, ignore_errors=True)
        reader = self._spark.readStream.format("kafka").options(**self._options, subscribe=self._topic)
        frame = reader.option("startingOffsets", "earliest").load()
        writer = frame.writeStream.format("delta").trigger(availableNow=True)
        query = writer.option("checkpointLocation", str(self._directory / "checkpoint"))
        query.start(str(self._directory / "table")).awaitTermination()
        found = self._spark.read.format("delta").load(str(self._directory / "table")).count()
        assert found == self._written, f"{found} rows of {self._written}"
        return found


JOBS: dict[str, Callable[[Load], int]] = {
    "batch write": Load.write,
    "batch read": Load.read,
    "stream into Delta": Load.stream_into_delta,
}


@contextmanager
def brokers() -> Iterator[dict[str, Broker]]:
    with ExitStack() as stack:
        yield {
            "kbroker": stack.enter_context(BenchKbroker()),
            "Apache Kafka": stack.enter_context(BenchKafka()),
        }


def measure(rows: int, partitions: int, rounds: int) -> str:
    spark = create_session("benchmark", {"spark.master": "local[2]", "spark.driver.memory": "2g"})
    best: dict[tuple[str, str], tuple[float, float]] = {}
    try:
        with brokers() as running, tempfile.TemporaryDirectory(prefix="kbroker-bench-spark-") as directory:
            loads = {
                name: Load(spark, broker, rows, partitions, Path(directory) / broker.name)
                for name, broker in running.items()
            }
            order = list(running.items())
            for _ in range(rounds + 1):  # the first round warms Spark up
                order.reverse()  # neither is always the one that finds the caches warm
                for job, run in JOBS.items():
                    for name, broker in order:
                        meter = Meter(broker)
                        moved = run(loads[name])
                        rate, used = moved / meter.wall_seconds, meter.cpu_seconds / moved * 1e6
                        if rate > best.get((job, name), (0.0, 0.0))[0]:
                            best[job, name] = rate, used
    finally:
        spark.stop()
    ours, theirs = "kbroker", "Apache Kafka"
    lines = [
        (
            job,
            round(best[job, ours][0]),
            round(best[job, theirs][0]),
            f"{best[job, ours][0] / best[job, theirs][0]:.2f}",
            f"{best[job, ours][1]:.2f}",
            f"{best[job, theirs][1]:.2f}",
        )
        for job in JOBS
    ]
    return table(("rows/s", ours, theirs, "ratio", f"{ours} CPU µs/row", f"{theirs} CPU µs/row"), lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=100_000, help="per write and round (default 100000)")
    parser.add_argument("--partitions", type=int, default=4)
    parser.add_argument("--rounds", type=int, default=2, help="beside the first, which warms up")
    given = parser.parse_args()
    print(measure(given.rows, given.partitions, given.rounds))


if __name__ == "__main__":
    main()
