"""The actions of `kbroker pipeline` that need Spark; also what spark-submit runs (submit.py)."""

from __future__ import annotations

import logging
import signal
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from kbroker.pipeline import demo, kafka_client, plan, replay, runner
from kbroker.pipeline.errors import PipelineError
from kbroker.pipeline.live import Display
from kbroker.pipeline.ranges import Range
from kbroker.pipeline.render import table
from kbroker.pipeline.session import opened, require_spark
from kbroker.pipeline.state import State

if TYPE_CHECKING:
    from kbroker.pipeline.spec import Pipeline


def run(pipeline: Pipeline, *, once: bool = False, dry_run: bool = False) -> int:
    """Until the queries are done, or SIGTERM or Ctrl-C; exit code 1 when one is beyond help."""
    _prepare()
    if once:
        pipeline = runner.once(pipeline)
    with kafka_client.connected(pipeline) as client:  # before Spark: a missing topic is known at once
        runner.check_sources(pipeline, client)
    with opened(pipeline.name, pipeline.spark) as spark:
        if dry_run:
            _say(plan.describe(spark, pipeline))
            return 0
        job = runner.Runner(pipeline, spark)
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda *_: job.stop())
        display = Display()
        display.close(job.run(display))
        return 0


def replay_range(pipeline: Pipeline, start: str, end: str, names: list[str] | None) -> int:
    _prepare()
    wanted = Range(replay.parse_time(start), replay.parse_time(end))
    if wanted.start_ms >= wanted.end_ms:
        raise PipelineError("--from is before --to")
    chosen = replay.choose(pipeline, names)  # before Spark, as are the lock and the connection
    with ExitStack() as stack:
        stack.enter_context(State(pipeline.state).locked())
        client = stack.enter_context(kafka_client.connected(pipeline))
        spark = stack.enter_context(opened(f"{pipeline.name}-replay", pipeline.spark))
        done = replay.replay(spark, pipeline, client, wanted, chosen)
    _say(table(("sink", "records read", ""), done))
    return 0


def run_demo(directory: Path | None, count: int) -> int:
    _prepare()
    if directory is None:
        with tempfile.TemporaryDirectory(prefix="kbroker-demo-", ignore_cleanup_errors=True) as passing:
            demo.demo(Path(passing), count, _say, kept=False)
        _say("\nNothing is left of it; --keep DIR keeps the file, the topic and the tables.")
        return 0
    if directory.exists() and any(directory.iterdir()):
        raise PipelineError(f"{directory} is not empty")
    directory.mkdir(parents=True, exist_ok=True)
    demo.demo(directory.absolute(), count, _say, kept=True)
    return 0


def _prepare() -> None:
    require_spark()
    from pyspark.logger import PySparkLogger

    logging.basicConfig(stream=sys.stderr, level=logging.CRITICAL, format="%(levelname)s %(message)s")
    # Others tell of every lost connection and every refused query, with stack traces and plans; what matters
    # of it comes as an error of ours.
    for noisy in ("kafka", "py4j"):
        logging.getLogger(noisy).setLevel(logging.CRITICAL)
    for noisy in ("DataFrameQueryContextLogger", "SQLQueryContextLogger"):
        PySparkLogger.getLogger(noisy).setLevel(logging.CRITICAL)
    logging.getLogger("kbroker").setLevel(logging.INFO)


def _say(text: str) -> None:
    print(text, flush=True)  # noqa: T201
