"""`kbroker pipeline status` and `replay` as a user runs them, beside real jobs."""

from __future__ import annotations

import datetime
import json
import signal
import subprocess
import sys
from collections.abc import Callable
from typing import Any

from compat.harness.waiting import eventually
from compat.spark.jobs import Job, pipeline_command
from compat.spark.topics import Topic
from kbroker.cli import INTERRUPTED

NewTopic = Callable[..., Topic]
SOURCE = """\
sources:
  rows:
    topics: {topic}
    decode: {{format: json, schema: id bigint}}
    on_reject: drop
"""


def rows(start: int, end: int) -> list[str]:
    return [json.dumps({"id": n}) for n in range(start, end)]


def test_status_beside_a_running_pipeline(job: Job, new_topic: NewTopic) -> None:
    topic = new_topic(2)
    topic.produce([*rows(0, 6), "{broken"])
    topic.produce(rows(6, 10), partition=1)
    text = SOURCE.format(topic=topic) + "sinks:\n  out: {from: rows, delta: ./out}\n"

    def status() -> dict[str, Any]:
        (query,) = json.loads(pipeline_command("status", job.file, "--json").stdout)
        assert isinstance(query, dict)
        return query

    def lags(query: dict[str, Any]) -> list[tuple[int | None, int, int]]:
        return [(part["offset"], part["end"], part["lag"]) for part in query["partitions"]]

    job.declare(text)
    before = status()
    assert (before["batch"], before["last_batch"], before["lag"]) == (None, None, 11)
    assert lags(before) == [(None, 7, 7), (None, 4, 4)]
    running = job.start(text, "1 hour")  # one batch now, and none for the rest of the test
    try:
        after = eventually(status, lambda query: query["batch"] == 0 and query["rows"] > 0, 60)
        assert (after["query"], after["lag"], after["rows"], after["rejected"]) == ("out", 0, 11, 1)
        assert after["last_rows"] == 11
        assert after["rows_per_second"] > 0
        moment = datetime.datetime.fromisoformat(after["last_batch"])
        assert abs(datetime.datetime.now(datetime.UTC) - moment) < datetime.timedelta(minutes=5)
        assert lags(after) == [(7, 7, 0), (4, 4, 0)]
        topic.produce(rows(10, 15), partition=1)
        assert lags(status()) == [(7, 7, 0), (4, 9, 5)]
        shown = pipeline_command("status", job.file).stdout
        assert [line.split() for line in shown.splitlines()[-2:]] == [
            ["out", topic.name, "0", "7", "7", "0"],
            ["out", topic.name, "1", "4", "9", "5"],
        ]
        assert watched_lags(job, lambda: topic.produce(rows(15, 17))) == (5, 7)
    finally:
        running.stop()


def watched_lags(job: Job, change: Callable[[], None]) -> tuple[int, int]:
    """What `status --watch` shows before and after a change; Ctrl-C ends it."""
    command = [sys.executable, "-m", "kbroker", "pipeline", "status", job.file, "--watch", "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as watching:
        assert watching.stdout is not None
        first = last = json.loads(watching.stdout.readline())[0]["lag"]
        change()
        while last == first:
            last = json.loads(watching.stdout.readline())[0]["lag"]
        watching.send_signal(signal.SIGINT)
        assert watching.wait(60) == INTERRUPTED
    return first, last
