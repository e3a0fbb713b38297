"""kill -9 of Spark and of the broker while rows flow: every id that was acknowledged is in the table once."""

from __future__ import annotations

import json
import random
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from compat.clients.spark.jobs import SMALL_AND_SHORT, JobProcess
from compat.clients.spark.topics import Topic
from compat.harness.brokers import Server
from compat.harness.waiting import eventually

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PIPELINE = """\
name: crashes
bootstrap_servers: {bootstrap}
state: ./state
trigger: 200 milliseconds
sources:
  rows:
    topics: {topic}
    options: {{maxOffsetsPerTrigger: 2000}}
    decode: {{format: json, schema: id bigint}}
    watermark: {{column: _timestamp, delay: 1 hour}}
sinks:
  appended: {{from: rows, delta: ./appended}}
"""
MORE_SINKS = """\
  upserted: {from: rows, delta: ./upserted, mode: upsert, key: id}
  files: {from: rows, parquet: ./files}
"""


class Feeder:
    """Sends numbered rows, some at a time, until it is stopped; counts those that were acknowledged."""

    def __init__(self, topic: Topic, seconds_between: float = 0.2) -> None:
        self.sent = 0
        self._topic = topic
        self._pause = seconds_between
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while not self._stop.wait(self._pause):
            batch = range(self.sent, self.sent + 100)
            # An idempotent producer: what it repeats after a broker's death is stored once.
            self._topic.produce(
                [json.dumps({"id": n}) for n in batch],
                partition=self.sent // 100 % 2,
                enable_idempotence=True,
            )
            self.sent += 100

    def stop(self) -> int:
        self._stop.set()
        self._thread.join(120)
        assert not self._thread.is_alive()
        return self.sent


@pytest.mark.timeout(900)
@pytest.mark.parametrize("kills", [2, pytest.param(6, marks=pytest.mark.spark_full)])
def test_exactly_once_across_kills(
    spark: SparkSession, kafka_server: Server, new_topic: Callable[..., Topic], tmp_path: Path, kills: int
) -> None:
    tables = {"appended": "delta"}
    if kills > 2:
        tables |= {"upserted": "delta", "files": "parquet"}
    elif kafka_server.name != "kbroker":
        pytest.skip("the short form is for kbroker; make compat-spark-full runs the long one on both")
    topic = new_topic(2)
    file = tmp_path / "pipeline.yml"
    text = SMALL_AND_SHORT + PIPELINE.format(bootstrap=kafka_server.bootstrap, topic=topic)
    file.write_text(text + MORE_SINKS if kills > 2 else text)
    chance = random.Random(kills)
    feeder = Feeder(topic)

    def ids(table: str, format: str) -> list[int]:
        """In the table so far."""
        path = tmp_path / table
        if not path.exists() or (format == "delta" and not list(path.glob("_delta_log/*.json"))):
            return []
        reader = spark.read if format == "delta" else spark.read.schema("id bigint")
        return sorted(row.id for row in reader.format(format).load(str(path)).select("id").collect())

    def wait_for(table: str, format: str, rows: int, job: JobProcess) -> None:
        eventually(lambda: len(ids(table, format)) >= rows or job.ended, seconds=180)
        assert not job.ended, job.output()

    job = JobProcess("run", str(file), output=tmp_path / "output.txt")
    try:
        for kill in range(kills):
            # Somewhere within the batches that follow.
            before = len(ids("appended", "delta"))
            wait_for("appended", "delta", before + chance.randrange(1, 400), job)
            if kill % 2 == 0:
                job.kill()
                job = JobProcess("run", str(file), output=tmp_path / "output.txt")
            else:
                kafka_server.kill()
                kafka_server.start_again()
        sent = feeder.stop()
        for table, format in tables.items():
            wait_for(table, format, sent, job)
        assert job.terminate() == 0, job.output()
    finally:
        if not job.ended:
            job.kill()
        feeder.stop()
    for table, format in tables.items():
        assert ids(table, format) == list(range(sent)), table
