from __future__ import annotations

import json
from pathlib import Path

import pytest

from kbroker.pipeline import reading
from kbroker.pipeline.errors import PipelineError
from kbroker.pipeline.spec import Deduplicate, Join, Sql, Trigger, Window

from .declared import GOOD, load, problems


def test_a_good_file_becomes_typed_objects(tmp_path: Path) -> None:
    pipeline = load(tmp_path, GOOD)
    source, sink = pipeline.sources["orders"], pipeline.sinks["out"]
    assert (source.topics, source.decode.format, source.starting_offsets) == (("orders",), "json", "earliest")
    assert source.watermark is not None
    assert source.watermark.delay == "10 minutes"
    assert isinstance(pipeline.steps["big"].action, Sql)
    assert (sink.kind, sink.mode, sink.trigger) == ("delta", "append", Trigger("interval", "1 second"))


def test_paths_are_relative_to_the_file_and_urls_stay(tmp_path: Path) -> None:
    pipeline = load(tmp_path, GOOD.replace("./out", "s3a://bucket/out"))
    assert pipeline.sinks["out"].target == "s3a://bucket/out"
    assert pipeline.state == str(tmp_path / "orders.state")


def test_every_kind_of_step(tmp_path: Path) -> None:
    text = GOOD.replace(
        "sinks:",
        """\
  once: {deduplicate: {from: big, by: [id]}}
  hourly: {window: {from: once, time: placed_at, size: 1 hour, aggregate: {total: sum(amount)}}}
  both: {join: {left: once, right: big, on: id}}
sinks:
  rest: {from: both, console: true}
  gold: {from: hourly, delta: ./gold}""",
    )
    steps = load(tmp_path, text).steps
    assert isinstance(steps["once"].action, Deduplicate)
    assert isinstance(steps["hourly"].action, Window)
    assert isinstance(steps["both"].action, Join)


def test_a_sink_takes_the_trigger_of_the_file_unless_it_has_its_own(tmp_path: Path) -> None:
    text = GOOD.replace("name: orders", "name: orders\ntrigger: available_now")
    assert load(tmp_path, text).sinks["out"].trigger == Trigger("available_now")
    assert load(tmp_path, text + "    trigger: 5 seconds\n").sinks["out"].trigger.interval == "5 seconds"


def test_options_of_the_connector_are_text(tmp_path: Path) -> None:
    text = GOOD.replace(
        "topics: orders\n", "topics: orders\n    options: {maxOffsetsPerTrigger: 10, failOnDataLoss: false}\n"
    )
    options = load(tmp_path, text).sources["orders"].options
    assert options == {"maxOffsetsPerTrigger": "10", "failOnDataLoss": "false"}


def test_a_json_schema_file_gives_columns_and_rules(tmp_path: Path) -> None:
    schema = {"properties": {"id": {"type": "integer", "minimum": 1}}, "required": ["id"]}
    (tmp_path / "order.json").write_text(json.dumps(schema))
    text = GOOD.replace('schema: "id bigint, placed_at timestamp, amount double"', "json_schema: order.json")
    text = text.replace("column: placed_at", "column: _timestamp")
    decode = load(tmp_path, text).sources["orders"].decode
    assert decode.schema == "`id` bigint"
    assert [rule.expect for rule in decode.rules] == ["`id` is not null", "`id` is null or (`id` >= 1)"]


@pytest.mark.parametrize(
    ("old", "new", "line", "said"),
    [
        ("name: orders", "name: my orders", 1, "is no name"),
        ("topics: orders", "topcs: orders", 4, "did you mean 'topics'?"),
        ("topics: orders", "topics: orders\n    pattern: o.*", 3, "needs one of topics, pattern, assign"),
        ("format: json", "format: jsn", 5, "did you mean 'json'?"),
        ("id bigint,", "id bigit,", 5, "did you mean 'bigint'?"),
        ("delay: 10 minutes", "delay: soon", 6, "a length of time such as '10 seconds', not 'soon'"),
        ("sql: SELECT", "sqql: SELECT", 9, "no option 'sqql'"),
        ("delta: ./out", "delta: ./out\n    kafka: out", 11, "needs one of delta, parquet, kafka, console"),
        ("delta: ./out", "delta: ./out\n    trigger: sometimes", 14, "available_now, an interval"),
        ("delta: ./out", "delta: ./out\n    merge_schema: perhaps", 14, "true or false, not 'perhaps'"),
        ("    from: big\n", "", 11, "a sink needs 'from'"),
        ("  big:\n", "  orders:\n", 8, "there is a view 'orders' in sources already"),
        ("delta: ./out", "delta: ./out\n    delta: ./again", 14, "'delta' stands here twice"),
        ("format: json, schema", "format: json, json_schema: missing.json, schema", 5, "cannot read"),
    ],
)
def test_a_problem_names_its_line(tmp_path: Path, old: str, new: str, line: int, said: str) -> None:
    assert old in GOOD
    found = problems(tmp_path, GOOD.replace(old, new))
    assert (line, True) in [(problem.line, said in problem.message) for problem in found], found


def test_all_problems_are_told_at_once(tmp_path: Path) -> None:
    text = (
        GOOD.replace("topics:", "topcs:")
        .replace("delay: 10 minutes", "delay: soon")
        .replace("delta:", "dleta:")
    )
    assert [problem.line for problem in problems(tmp_path, text)] == [3, 4, 6, 11, 13]


def test_what_is_no_yaml_says_where(tmp_path: Path) -> None:
    (problem,) = problems(tmp_path, "name: x\nsources: [\n")
    assert problem.line == 3
    assert "not YAML" in problem.message
    assert problems(tmp_path, "")[0].message == "the file is empty"
    assert "a pipeline is a mapping" in problems(tmp_path, "- a list")[0].message


def test_a_missing_file_is_told(tmp_path: Path) -> None:
    with pytest.raises(PipelineError, match="cannot read"):
        reading.load(tmp_path / "none.yml")
