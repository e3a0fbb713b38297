from __future__ import annotations

import pytest

from kbroker.pipeline import sql


def names(text: str) -> list[str]:
    return [reference.name for reference in sql.analyse(text).references]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("SELECT * FROM a", ["a"]),
        ("select x from `a` join b using (id) left outer join c on b.x = c.x", ["a", "b", "c"]),
        ("SELECT * FROM a, b x, c WHERE a.id IN (1, 2)", ["a", "b", "c"]),
        ("SELECT * FROM (SELECT * FROM a WHERE id IN (SELECT id FROM b)) t", ["a", "b"]),
        ("WITH t AS (SELECT * FROM a), u AS (SELECT * FROM t) SELECT * FROM u", ["a"]),
        ("SELECT extract(hour FROM placed_at), trim(BOTH ' ' FROM name) FROM a", ["a"]),
        ("SELECT * FROM a -- FROM x\nWHERE note = 'from y' /* from z */", ["a"]),
        ("SELECT * FROM a LATERAL VIEW explode(items) t AS item", ["a"]),
        ("SELECT * FROM range(5)", []),
        ("SELECT * FROM catalog.schema.t JOIN delta.`/path` ON true", []),
        ("SELECT * FROM a UNION ALL SELECT * FROM b", ["a", "b"]),
        ("SELECT x IS DISTINCT FROM y FROM a", ["a"]),
        ("FROM a SELECT id", ["a"]),
    ],
)
def test_the_views_a_query_reads(text: str, expected: list[str]) -> None:
    assert names(text) == expected


@pytest.mark.parametrize(
    ("text", "aggregates"),
    [
        ("SELECT id FROM a", False),
        ("SELECT id, count(*) FROM a GROUP BY id", True),
        ("SELECT DISTINCT id FROM a", True),
        ("SELECT sum(x) FROM a", True),
        ("SELECT sum(x) OVER (PARTITION BY id) FROM a", False),
        ("SELECT max(least(x, 1)) FROM a", True),
        ("SELECT count FROM a", False),
    ],
)
def test_whether_a_query_aggregates(text: str, aggregates: bool) -> None:
    assert sql.analyse(text).aggregates is aggregates


def test_a_reference_knows_its_line() -> None:
    references = sql.analyse("SELECT *\nFROM a\n  JOIN b USING (id)").references
    assert references == (sql.Reference("a", 1), sql.Reference("b", 2))


@pytest.mark.parametrize(
    ("text", "line"), [("SELECT (1\nFROM a", 0), ("SELECT 1)\nFROM a", 0), ("SELECT\n'x FROM a", 1), ("", 0)]
)
def test_what_does_not_close_is_malformed(text: str, line: int) -> None:
    with pytest.raises(sql.Malformed) as caught:
        sql.analyse(text)
    assert caught.value.line == line
