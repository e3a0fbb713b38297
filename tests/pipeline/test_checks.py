from __future__ import annotations

from pathlib import Path

import pytest

from kbroker.pipeline import checks
from kbroker.pipeline.columns import of_views
from kbroker.pipeline.decoding import KAFKA_COLUMNS

from .declared import GOOD, load, problems

WINDOW = "window: {from: orders, time: placed_at, size: 1 hour, aggregate: {total: sum(amount)}}"
SQL = "sql: SELECT * FROM orders WHERE amount > 100"
SCHEMA = ', schema: "id bigint, placed_at timestamp, amount double"}'
WATERMARK = "    watermark: {column: placed_at, delay: 10 minutes}\n"


@pytest.mark.parametrize(
    ("changes", "line", "said"),
    [
        ([("FROM orders", "FROM ordrs")], 9, "did you mean 'orders'?"),
        ([("FROM orders", "FROM later")], 9, "'later', which is no source, table or earlier step"),
        ([("from: big", "from: bigg")], 12, "did you mean 'big'?"),
        ([("> 100", "> (100")], 9, "a bracket is not closed"),
        ([("> 100", "> '100")], 9, "the quote ' is not closed"),
        ([("SELECT *", "UPDATE x")], 9, "a step's SQL is a query"),
        ([("./out", "./out\n    trigger: continuous 1 second")], 14, "not to delta"),
        (
            [("delta: ./out", "kafka: out\n    trigger: continuous 1 second"), (SQL, WINDOW)],
            14,
            "a continuous trigger allows no window",
        ),
        (
            [("delta: ./out", "kafka: out\n    trigger: continuous 1 second"), ("> 100", "> 1 LIMIT 3")],
            14,
            "a continuous trigger allows no LIMIT",
        ),
        ([("./out", "./out\n    mode: upsert")], 14, "an upsert needs a key"),
        ([("delta: ./out", "parquet: ./out\n    mode: upsert\n    key: id")], 14, "only a Delta table"),
        ([("./out", "./out\n    key: id")], 14, "a key is for mode: upsert"),
        ([("delta: ./out", "console: true\n    partition_by: id")], 14, "not partitioned"),
        ([("./out", "./out\n    output_mode: complete")], 14, "complete needs an aggregation"),
        ([(SQL, WINDOW), (WATERMARK, "")], 7, "window needs a watermark"),
        ([(SQL, "deduplicate: {from: orders, by: id}"), (WATERMARK, "")], 7, "deduplicate needs a watermark"),
        (
            [(SQL, "sql: SELECT id, count(*) FROM orders GROUP BY id"), (WATERMARK, "")],
            10,
            "aggregates without a watermark, so no row is ever final",
        ),
        (
            [("10 minutes}", "10 minutes, late: dead_letter}"), (SQL, WINDOW)],
            6,
            "late: dead_letter needs a dead_letter topic on source 'orders'",
        ),
        (
            [("10 minutes}", "10 minutes, late: dead_letter}\n    dead_letter: rejected")],
            6,
            "no deduplicate and no window of a sink reads 'orders'",
        ),
        (
            [
                ("10 minutes}", "10 minutes, late: dead_letter}\n    dead_letter: rejected"),
                ("name: orders", "name: orders\nstate: s3a://bucket/state"),
                (SQL, WINDOW),
            ],
            7,
            "late: dead_letter needs a local state directory",
        ),
        ([("delta: ./out", "kafka: orders")], 13, "writes to the topic it reads"),
        (
            [("./out", "./out\n    mode: upsert\n    key: [id, idd]")],
            15,
            "sink 'out': key: 'big' has no column 'idd'; did you mean 'id'?",
        ),
        ([("delta: ./out", "kafka: out\n    key: ident")], 14, "'big' has no column 'ident'"),
        (
            [("delta: ./out", "kafka: out\n    encode: raw")],
            14,
            "'big' has no column 'value'; it has id, placed_at",
        ),
        ([("./out", "./out\n    mode: upsert\n    key: id\n    latest_by: seen")], 16, "no column 'seen'"),
        (
            [("./out", "./out\n    partition_by: day")],
            14,
            "sink 'out': partition_by: 'big' has no column 'day'",
        ),
        ([("column: placed_at", "column: placed")], 6, "did you mean 'placed_at'?"),
        ([(SQL, "deduplicate: {from: orders, by: [id, nr]}")], 9, "step 'big': 'orders' has no column 'nr'"),
        ([(SQL, WINDOW.replace("time: placed_at", "time: at"))], 9, "'orders' has no column 'at'"),
        ([(SQL, WINDOW.replace("size:", "group_by: shop, size:"))], 9, "'orders' has no column 'shop'"),
        (
            [(SQL, WINDOW), ("./out", "./out\n    mode: upsert\n    key: [window_start, sum]")],
            15,
            "'big' has no column 'sum'; it has window_start, window_end, total",
        ),
        (
            [
                (SQL, "join: {left: orders, right: names, on: [id, name]}"),
                (
                    "steps:",
                    'tables:\n  names: {path: ./n, format: csv, schema: "id bigint, name string"}\nsteps:',
                ),
            ],
            11,
            "step 'big': 'orders' has no column 'name'",
        ),
        ([("topics: orders\n", "topics: orders\n    dead_letter: orders\n")], 5, "a loop"),
        (
            [("topics: orders\n", "topics: orders\n    options: {maxOffsetPerTrigger: 1}\n")],
            5,
            "did you mean",
        ),
        ([("topics: orders\n", "topics: orders\n    options: {subscribe: x}\n")], 5, "is set by 'topics'"),
        ([("topics: orders\n", "topics: orders\n    options: {endingOffsets: latest}\n")], 5, "replay"),
        (
            [("topics: orders\n", "topics: orders\n    options: {kafka.auto.offset.reset: latest}\n")],
            5,
            "does not let",
        ),
        ([("topics: orders\n", "topics: orders\n    starting_offsets: newest\n")], 5, "earliest, latest or"),
        ([("topics: orders\n", "topics: orders\n    starting_offsets: {x: {0: 1}}\n")], 5, "not among"),
        ([(', schema: "id bigint, placed_at timestamp, amount double"', "")], 5, "json needs one of schema"),
        ([("format: json, schema", "format: raw, schema")], 5, "raw has no schema"),
        ([("format: json, schema", "format: avro, schema")], 5, "avro needs avro_schema"),
        (
            [(SCHEMA, ", infer: 10}"), ("json", "avro")],
            5,
            "for json and csv; avro needs avro_schema",
        ),
        (
            [(SCHEMA, ", infer: 10}"), ("json", "string")],
            5,
            "for json and csv; string has no schema",
        ),
        (
            [("{format: json" + SCHEMA, "\n      format: raw\n      infer: 10")],
            7,
            "infer is for json and csv; raw has no schema",
        ),
        ([(SCHEMA, ", infer: 10, columns: [a]}")], 5, "columns is for csv with infer"),
        ([("json" + SCHEMA, 'csv, schema: "id bigint", columns: [a]}')], 5, "columns is for csv with infer"),
        (
            [
                (
                    "    from: big\n    delta: ./out",
                    "    from: big\n    delta: ./t\n  b: {from: big, delta: ./t}",
                )
            ],
            14,
            "share a table",
        ),
    ],
)
def test_what_spark_would_refuse_late_is_told_with_its_line(
    tmp_path: Path, changes: list[tuple[str, str]], line: int, said: str
) -> None:
    text = GOOD
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    found = problems(tmp_path, text)
    assert (line, True) in [(problem.line, said in problem.message) for problem in found], found


def test_a_step_in_a_block_counts_its_own_lines(tmp_path: Path) -> None:
    text = GOOD.replace(SQL, "sql: |\n      SELECT *\n      FROM orders\n      JOIN custmers USING (id)")
    (problem,) = problems(tmp_path, text)
    assert problem.line == 12
    assert "'custmers'" in problem.message


def test_joins_of_streams_and_tables(tmp_path: Path) -> None:
    tables = "tables:\n  names: {path: ./names}\nsteps:"
    for how, said in (("right", "cannot right-join a stream with a table"), ("full", "cannot full-join")):
        join = f"join: {{left: orders, right: names, on: id, how: {how}}}"
        found = problems(tmp_path, GOOD.replace("steps:", tables).replace(SQL, join))
        assert said in found[0].message
    good = GOOD.replace("steps:", tables).replace(
        SQL, "join: {left: orders, right: names, on: id, how: left}"
    )
    assert load(tmp_path, good).tables["names"].format == "delta"


@pytest.mark.parametrize(
    ("query", "columns"),
    [
        ("SELECT * FROM orders", ("id", "placed_at", "amount", *KAFKA_COLUMNS)),
        (
            "SELECT o.id, `amount` AS total, round(amount, 2) rounded FROM orders o",
            ("id", "total", "rounded"),
        ),
        ("SELECT DISTINCT id, CASE WHEN amount > 1 THEN f(id) END AS x FROM orders", ("id", "x")),
        ("SELECT id, CASE WHEN amount > 1 THEN f(id) END FROM orders", None),
        ("SELECT id, amount + 1 FROM orders", None),
        ("SELECT id, amount total FROM orders", None),
        ("SELECT * FROM (SELECT id FROM orders)", None),
        ("SELECT * FROM orders a JOIN orders b USING (id)", None),
        ("SELECT a.* FROM orders a", None),
        ("SELECT id FROM orders UNION ALL SELECT id FROM orders", None),
        ("WITH x AS (SELECT id FROM orders) SELECT id FROM x", None),
        ("SELECT *, x FROM orders LATERAL VIEW explode(array(1)) t AS x", None),
    ],
)
def test_columns_of_a_query_are_known_where_all_have_plain_names(
    tmp_path: Path, query: str, columns: tuple[str, ...] | None
) -> None:
    pipeline = load(tmp_path, GOOD.replace("sql: SELECT * FROM orders WHERE amount > 100", f'sql: "{query}"'))
    assert of_views(pipeline)["big"] == columns


def test_unused_parts_and_growing_state_are_warnings(tmp_path: Path) -> None:
    unused = GOOD.replace("sinks:", "  idle: {sql: SELECT * FROM orders}\nsinks:")
    (warning,) = checks.warnings(load(tmp_path, unused))
    assert (warning.line, "reaches no sink" in warning.message) == (10, True)


def test_managed_options_are_not_among_those_a_reader_takes() -> None:
    assert not set(checks.MANAGED_OPTIONS) & checks.READER_OPTIONS
