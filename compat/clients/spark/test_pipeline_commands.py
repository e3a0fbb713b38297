"""`kbroker pipeline status` and `replay` as a user runs them, beside real jobs."""

from __future__ import annotations

import datetime
import json
import signal
import subprocess
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from compat.clients.spark.jobs import SMALL_AND_SHORT, Job, JobProcess, pipeline_command
from compat.clients.spark.topics import Topic
from compat.harness.waiting import eventually
from kbroker.exit_codes import INTERRUPTED

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NewTopic = Callable[..., Topic]
SOURCE = """\
sources:
  rows:
    topics: {topic}
    decode: {{format: json, schema: id bigint}}
    on_reject: drop
"""


def rows(numbers: Iterable[int]) -> list[str]:
    return [json.dumps({"id": n}) for n in numbers]


def test_status_beside_a_running_pipeline(job: Job, new_topic: NewTopic) -> None:
    topic = new_topic(2)
    topic.produce([*rows(range(6)), "{broken"])
    topic.produce(rows(range(6, 10)), partition=1)
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
        topic.produce(rows(range(10, 15)), partition=1)
        assert lags(status()) == [(7, 7, 0), (4, 9, 5)]
        shown = pipeline_command("status", job.file).stdout
        assert [line.split() for line in shown.splitlines()[-2:]] == [
            ["out", topic.name, "0", "7", "7", "0"],
            ["out", topic.name, "1", "4", "9", "5"],
        ]
        assert watched_lags(job, lambda: topic.produce(rows(range(15, 17)))) == (5, 7)
    finally:
        running.stop()


def test_counts_go_on_after_a_pause(job: Job, new_topic: NewTopic) -> None:
    """A query that waits for records reports, too; what comes then is counted, and committed at the end."""
    topic = new_topic()
    topic.produce([*rows(range(6)), "{broken"])
    head = f"progress_group: {topic}\n"
    text = head + SOURCE.format(topic=topic) + "sinks:\n  out: {from: rows, delta: ./out}\n"
    running = job.start(text)

    def counted() -> list[tuple[int, int]]:
        return [(each.rows, each.rejected) for each in running.progress]

    def waiting() -> bool:
        return any(each.heard > each.timestamp > "" for each in running.progress)

    try:
        eventually(waiting, seconds=60)
        assert counted() == [(7, 1)]
        topic.produce([*rows(range(6, 10)), "{broken"])
        eventually(counted, lambda found: found == [(12, 2)], 60)
    finally:
        running.stop()
    assert topic.committed(f"{topic}.out") == {0: 12}
    topic.produce(rows(range(10, 13)))
    job.run(text)
    assert topic.committed(f"{topic}.out") == {0: 15}


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


FIRST = 1_767_225_600_000  # 2026-01-01T00:00Z
MINUTE = 60_000


def test_replay_killed_in_the_middle_and_run_again(
    job: Job, new_topic: NewTopic, spark: SparkSession
) -> None:
    """Rows that a table has lost come back once; those that it has, and those out of the range, stay."""
    from delta.tables import DeltaTable

    topic = new_topic(2, retention_ms="-1")
    for partition in (0, 1):
        numbers = range(partition, 400, 2)
        topic.produce(
            rows(numbers), partition=partition, timestamps=[FIRST + number * MINUTE for number in numbers]
        )
    text = (
        SMALL_AND_SHORT
        + SOURCE.format(topic=topic)
        + (
            "sinks:\n  appended: {from: rows, delta: ./appended}\n"
            "  upserted: {from: rows, delta: ./upserted, mode: upsert, key: id}\n"
            "  files: {from: rows, parquet: ./files}\n"
        )
    )
    job.run(text)
    for name in ("appended", "upserted"):
        DeltaTable.forPath(spark, str(job.directory / name)).delete("id % 3 = 0")
    missing = [(n,) for n in range(400) if n % 3]
    span = ("--from", "2026-01-01T01:00", "--to", "2026-01-01T05:00:00+00:00")  # minutes 60 to 299
    back = [(n,) for n in range(400) if n % 3 or 60 <= n < 300]

    def versions(name: str) -> int:
        return len(list((job.directory / name / "_delta_log").glob("*.json")))

    before = versions("appended")
    killed = JobProcess("replay", str(job.file), *span, output=job.directory / "killed.txt")
    try:
        eventually(lambda: versions("appended") > before or killed.ended, seconds=120)
    finally:
        killed.kill()
    assert job.rows("appended", "id") == back, killed.output()
    assert job.rows("upserted", "id") in (missing, back), "one commit per table: all or nothing"
    done = pipeline_command("replay", job.file, *span)
    assert [line.split()[:2] for line in done.stdout.splitlines()[2:4]] == [
        ["appended", "240"],
        ["upserted", "240"],
    ]
    assert "files                0  left out: parquet cannot tell what it has already" in done.stdout
    assert job.rows("appended", "id") == back
    assert job.rows("upserted", "id") == back
    # The stream goes on where it was.
    topic.produce(rows([400]))
    job.run(text)
    for name in ("appended", "upserted"):
        assert job.rows(name, "id") == [*back, (400,)]


def test_the_demo_leaves_nothing_behind_and_names_no_path_of_it(tmp_path: Path) -> None:
    pytest.importorskip("pyspark")
    here, temporary = tmp_path / "here", tmp_path / "temporary"
    here.mkdir()
    temporary.mkdir()
    done = pipeline_command("demo", "--orders", "200", cwd=here, TMPDIR=str(temporary))
    assert "Revenue per hour" in done.stdout
    assert list(here.iterdir()) == []
    assert list(temporary.iterdir()) == []
    assert str(temporary) not in done.stdout + done.stderr
