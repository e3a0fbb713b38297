"""What goes wrong in a pipeline: a clear message, a defined outcome, nothing lost and nothing doubled."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from compat.clients.spark.jobs import SMALL_AND_SHORT, Job, JobProcess
from compat.clients.spark.topics import Topic
from compat.harness.brokers import Server
from compat.harness.waiting import eventually
from kbroker.exit_codes import FAILED
from kbroker.pipeline.errors import FileProblem, PipelineError

NewTopic = Callable[..., Topic]
SOURCE = """\
sources:
  rows:
    topics: {topic}
    decode: {{format: json, schema: "id bigint, amount double"}}
"""
SINK = "sinks:\n  out: {{from: {view}, delta: ./out}}\n"


def rows(start: int, end: int) -> list[str]:
    return [json.dumps({"id": n, "amount": 1.5}) for n in range(start, end)]


def ids(*ranges: tuple[int, int]) -> list[tuple[int]]:
    return [(n,) for start, end in ranges for n in range(start, end)]


def test_an_undecodable_record_stops_the_job_until_it_is_told_what_to_do(
    job: Job, new_topic: NewTopic
) -> None:
    topic = new_topic()
    topic.produce(rows(0, 3))
    text = SOURCE.format(topic=topic) + SINK.format(view="rows")
    job.run(text)
    topic.produce(["{broken", *rows(3, 5)])
    with pytest.raises(PipelineError, match=rf"a record was rejected: {topic}-0@3: the value is no json"):
        job.run(text)
    assert job.rows("out", "id") == ids((0, 3))
    job.run(text.replace("sinks:", "    on_reject: drop\nsinks:"))
    assert job.rows("out", "id") == ids((0, 5))


def test_a_missing_topic_and_a_bad_step_name_their_lines(job: Job, new_topic: NewTopic, topic: str) -> None:
    with pytest.raises(PipelineError, match=f"line 6: source 'rows': there is no topic {topic}"):
        job.run(SOURCE.format(topic=topic) + SINK.format(view="rows"))
    there = new_topic()
    steps = "steps:\n  bad: {sql: SELECT amout FROM rows}\n"
    with pytest.raises(FileProblem) as caught:
        job.run(SOURCE.format(topic=there) + steps + SINK.format(view="bad"))
    said, _, proposed = str(caught.value).partition("; there are ")
    assert said == "line 10: step 'bad': there is no column `amout`"
    assert proposed.startswith("`amount`, ")
    assert "\n" not in proposed
    rule = SOURCE.format(topic=there) + "    validate: [id > 0, amout > 0]\n" + SINK.format(view="rows")
    with pytest.raises(FileProblem, match="line 9: rule 'amout > 0': there is no column `amout`"):
        job.run(rule)
    # Which columns a query has, only Spark knows where one has no name.
    steps = "steps:\n  bad: {sql: SELECT id + 1 FROM rows}\n"
    sink = SINK.format(view="bad").replace("./out", "./out, mode: upsert, key: id")
    with pytest.raises(FileProblem, match="line 12: sink 'out': key: 'bad' has no column 'id'; it has"):
        job.run(SOURCE.format(topic=there) + steps + sink)


def test_what_ends_a_job_is_told_in_a_line(job: Job, new_topic: NewTopic) -> None:
    topic = new_topic()
    topic.produce(rows(0, 3))
    text = SMALL_AND_SHORT + SOURCE.format(topic=topic) + SINK.format(view="rows")
    job.declare(text, "100 milliseconds")

    def told(run: JobProcess) -> str:
        """The one line after what Java says when it starts."""
        assert run.wait() == FAILED
        java, said = run.output().split("kbroker: ")
        assert not [line for line in java.splitlines() if line.startswith(("ERROR", "Traceback", "\tat"))]
        assert said.count("\n") == 1
        return said

    killed = JobProcess("run", str(job.file), output=job.directory / "killed.txt")
    try:
        eventually(lambda: killed.ended or len(job.rows("out", "id")) == 3, seconds=120)
        killed.kill_java()
        assert told(killed).startswith(
            "Spark's Java process has ended: it was killed, or its memory was not enough"
        )
    finally:
        killed.kill()
    topic.produce(["{broken"])
    stopped = JobProcess("run", str(job.file), output=job.directory / "stopped.txt")
    try:
        assert told(stopped).startswith(
            f"out: a record was rejected: {topic}-0@3: the value is no json of the"
        )
    finally:
        stopped.kill()
    assert job.rows("out", "id") == ids((0, 3))


def test_a_schema_that_no_longer_fits_the_table(job: Job, new_topic: NewTopic) -> None:
    topic = new_topic()
    topic.produce(rows(0, 3))
    text = SOURCE.format(topic=topic) + SINK.format(view="rows")
    job.run(text)
    topic.produce(rows(3, 5))
    wider = text.replace("amount double", "amount double, note string")
    with pytest.raises(PipelineError, match=r"column note \(string\) is not in the table"):
        job.run(wider)
    with pytest.raises(PipelineError, match="column amount is double in the table, string here"):
        job.run(text.replace("amount double", "amount string"))
    assert job.rows("out", "id") == ids((0, 3))
    job.run(wider.replace("./out", "./out, merge_schema: true"))
    assert job.rows("out", "id") == ids((0, 5))


def test_lost_records_are_told_and_can_be_passed_over(job: Job, new_topic: NewTopic) -> None:
    topic = new_topic()
    topic.produce(rows(0, 3))
    text = SOURCE.format(topic=topic) + SINK.format(view="rows")
    job.run(text)
    topic.produce(rows(3, 8))
    topic.delete_records({0: 6})
    with pytest.raises(PipelineError, match="records that were not read yet are gone"):
        job.run(text)
    job.run(text.replace("    decode:", "    options: {failOnDataLoss: false}\n    decode:"))
    assert job.rows("out", "id") == ids((0, 3), (6, 8))


def test_a_broker_that_goes_away_is_waited_for(
    job: Job, new_topic: NewTopic, kafka_server: Server, caplog: pytest.LogCaptureFixture
) -> None:
    topic = new_topic()
    topic.produce(rows(0, 10))
    limits = "kafka.request.timeout.ms: 900, kafka.default.api.timeout.ms: 1000"
    impatient = f"    options: {{fetchOffset.numRetries: 1, {limits}}}\n    decode:"
    source = SOURCE.format(topic=topic).replace("    decode:", impatient)
    running = job.start(source + SINK.format(view="rows"))
    try:
        eventually(lambda: job.rows("out", "id"), lambda found: found == ids((0, 10)), 60)
        kafka_server.kill()
        eventually(lambda: "the broker does not answer" in caplog.text, seconds=60)
        kafka_server.start_again()
        topic.produce(rows(10, 20))
        eventually(lambda: job.rows("out", "id"), lambda found: found == ids((0, 20)), 90)
    finally:
        running.stop()
    assert job.rows("out", "id") == ids((0, 20))


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Callable[[str], None]]:
    """A disk of its own for the table; called with a size, it grows."""
    mounted = tmp_path / "out"
    mounted.mkdir()

    def mount(size: str, *more: str) -> int:
        options = ",".join([f"size={size}", *more])
        command = ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(mounted)]
        try:
            return subprocess.run(command, capture_output=True, check=False).returncode
        except FileNotFoundError:
            return 1

    if mount("64k") != 0:
        pytest.skip("this machine does not let a test mount a small disk")
    yield lambda size: mount(size, "remount") and None
    subprocess.run(["umount", "-l", str(mounted)], check=False)


def test_a_full_disk_is_told_and_the_job_goes_on_when_there_is_room(
    job: Job, new_topic: NewTopic, small_disk: Callable[[str], None], caplog: pytest.LogCaptureFixture
) -> None:
    topic = new_topic()
    topic.produce(rows(0, 20_000))
    text = SOURCE.format(topic=topic) + SINK.format(view="rows").replace("./out", "./out/table")
    running = job.start(text)
    try:
        eventually(lambda: "the disk is full" in caplog.text, seconds=60)
        small_disk("64m")
        eventually(lambda: len(job.rows("out/table", "id")), lambda count: count == 20_000, 90)
    finally:
        running.stop()
    assert job.rows("out/table", "id") == ids((0, 20_000))


def test_two_runs_of_one_pipeline_exclude_each_other(job: Job, new_topic: NewTopic) -> None:
    topic = new_topic()
    text = SOURCE.format(topic=topic) + SINK.format(view="rows")
    running = job.start(text)
    try:
        checkpoint = job.directory / "state" / "out" / "checkpoint"
        eventually(checkpoint.exists, seconds=60)
        with pytest.raises(PipelineError, match="running already"):
            job.run(text)
    finally:
        running.stop()


def test_a_continuous_trigger_copies_topic_to_topic(job: Job, new_topic: NewTopic) -> None:
    topic, out = new_topic(), new_topic()
    topic.produce(rows(0, 5))
    steps = "steps:\n  some: {sql: SELECT * FROM rows WHERE id < 100}\n"
    sink = f"sinks:\n  out: {{from: some, kafka: {out}, key: id}}\n"
    head = f"progress_group: {topic}\n"
    running = job.start(head + SOURCE.format(topic=topic) + steps + sink, "continuous 1 second")
    try:
        eventually(out.end_offset, lambda end: end == 5, 60)
        topic.produce(rows(5, 8))
        eventually(out.end_offset, lambda end: end == 8, 60)
        eventually(lambda: topic.committed(f"{topic}.out"), lambda found: found == {0: 8}, 60)
    finally:
        running.stop()
