"""What replay decides before Spark starts."""

from __future__ import annotations

from pathlib import Path

import pytest

from kbroker.cli import main
from kbroker.exit_codes import FAILED, OK
from kbroker.pipeline import replay
from kbroker.pipeline.errors import PipelineError
from kbroker.pipeline.state import State

from .declared import GOOD, has_run, load

WINDOW = "window: {from: orders, time: placed_at, size: 1 hour, aggregate: {total: sum(amount)}}"
SQL = "sql: SELECT * FROM orders WHERE amount > 100"
JOIN = "join: {left: orders, right: others, on: id}"
OTHERS = "  others: {topics: others, decode: {format: json, schema: id bigint}}\nsteps:"
RANGE = ["--from", "2026-01-01", "--to", "2026-01-02"]


REFUSED = [
    ([("delta: ./out", "parquet: ./out")], "parquet cannot tell what it has already"),
    ([("delta: ./out", "kafka: out")], "kafka cannot tell what it has already"),
    ([("delta: ./out", "console: true")], "console cannot tell what it has already"),
    (
        [
            (SQL, "sql: SELECT id, count(*) n FROM orders GROUP BY id"),
            ("./out", "./out, mode: upsert, key: id"),
        ],
        "step 'big' aggregates in SQL, without windows to replay",
    ),
    ([(SQL, WINDOW)], "windows need mode: upsert"),
    ([(SQL, "deduplicate: {from: orders, by: id}")], "deduplicated rows need mode: upsert"),
    ([(SQL, JOIN), ("steps:", OTHERS)], "step 'big' joins two streams"),
]


@pytest.mark.parametrize(("changes", "reason"), REFUSED)
def test_what_cannot_be_replayed_is_told_by_check_and_by_replay(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], changes: list[tuple[str, str]], reason: str
) -> None:
    text = GOOD.replace("  out:\n    from: big\n    delta: ./out\n", "  out: {from: big, delta: ./out}\n")
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    line = text.splitlines().index(next(each for each in text.splitlines() if each.startswith("  out:"))) + 1
    load(tmp_path, text)
    has_run(tmp_path)
    file = tmp_path / "pipeline.yml"
    assert main(["pipeline", "check", str(file)]) == OK
    assert f"{file}:{line}: note: sink 'out' cannot be replayed: {reason}" in capsys.readouterr().out
    pytest.importorskip("pyspark")
    assert main(["pipeline", "replay", str(file), *RANGE]) == FAILED
    assert capsys.readouterr().err == f"kbroker: sink 'out' cannot be replayed: {reason}\n"


def test_a_sink_that_never_ran_has_nothing_to_replay(tmp_path: Path) -> None:
    with pytest.raises(PipelineError, match="sink 'out' cannot be replayed: it has not run yet"):
        replay.choose(load(tmp_path, GOOD))


def test_others_are_replayed_unless_one_was_named(tmp_path: Path) -> None:
    pipeline = load(tmp_path, GOOD + "  files: {from: big, parquet: ./files}\n")
    has_run(tmp_path)
    has_run(tmp_path, "files")
    assert replay.choose(pipeline) == {"out": "", "files": "parquet cannot tell what it has already"}
    assert replay.choose(pipeline, ["out"]) == {"out": ""}
    with pytest.raises(PipelineError, match="sink 'files' cannot be replayed"):
        replay.choose(pipeline, ["out", "files"])
    with pytest.raises(PipelineError, match="there is no sink 'outt'; did you mean 'out'"):
        replay.choose(pipeline, ["outt"])


def test_a_replay_beside_a_run_is_refused_before_spark_starts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("pyspark")
    pipeline = load(tmp_path, GOOD)
    has_run(tmp_path)
    with State(pipeline.state).locked():
        assert main(["pipeline", "replay", str(tmp_path / "pipeline.yml"), *RANGE]) == FAILED
    assert "this pipeline is running already" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("yesterday", "'yesterday' is no time: 2026-01-31T10:00:00 or"),
        ("2026-01-03", "--from is before --to"),
    ],
)
def test_a_range_that_makes_no_sense(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, said: str
) -> None:
    pytest.importorskip("pyspark")
    load(tmp_path, GOOD)
    file = str(tmp_path / "pipeline.yml")
    assert main(["pipeline", "replay", file, "--from", text, "--to", "2026-01-02"]) == FAILED
    assert said in capsys.readouterr().err


def test_times_are_utc_unless_they_say_otherwise() -> None:
    assert replay.parse_time("2026-01-01T01:00") == replay.parse_time("2026-01-01T02:00+01:00")
    assert replay.parse_time("1767225600000") == replay.parse_time("2026-01-01")
