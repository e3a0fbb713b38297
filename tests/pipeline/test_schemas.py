from __future__ import annotations

import pytest

from kbroker.pipeline import json_schema, schemas
from kbroker.pipeline.durations import milliseconds


def test_a_mapping_becomes_ddl() -> None:
    columns = {
        "id": "bigint",
        "lines": [{"sku": "string", "n": "int"}],
        "when": "timestamp",
        "p": "decimal(10,2)",
    }
    assert schemas.from_mapping(columns) == (
        "`id` bigint, `lines` array<struct<`sku`: string, `n`: int>>, `when` timestamp, `p` decimal(10,2)"
    )


@pytest.mark.parametrize(
    "text",
    [
        "id bigint",
        "id bigint NOT NULL, name string",
        "a array<int>, m map<string, array<double>>, s struct<x: int, y: struct<z string>>",
        "`odd name` decimal(10, 2), d date, v varchar(20), t timestamp_ntz",
        "p decimal, q int",
    ],
)
def test_ddl_that_spark_takes_is_taken(text: str) -> None:
    assert schemas.from_ddl(text) == text


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("id bigit", "did you mean 'bigint'?"),
        ("id", "is no Spark type"),
        ("id int,", "name is missing"),
        ("id int name string", "',' is missing"),
        ("a array<int", "'>' is missing"),
        ("m map<string>", "',' is missing"),
        ("id int NOT", "followed by NULL"),
        ("id int; drop", "cannot read"),
    ],
)
def test_misspelled_ddl_is_told(text: str, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        schemas.from_ddl(text)


def test_json_schema_gives_columns_and_conditions() -> None:
    schema = {
        "$defs": {"money": {"type": "number", "exclusiveMinimum": 0}},
        "properties": {
            "id": {"type": "integer"},
            "at": {"type": "string", "format": "date-time"},
            "price": {"$ref": "#/$defs/money"},
            "state": {"enum": ["new", "it's"]},
            "tags": {"type": "array", "items": {"type": "string"}, "maxItems": 3},
            "buyer": {
                "type": "object",
                "properties": {"mail": {"type": ["string", "null"], "pattern": "@"}},
                "required": ["mail"],
            },
            "extra": {"type": "object"},
        },
        "required": ["id"],
    }
    ddl, conditions = json_schema.convert(schema)
    assert ddl == (
        "`id` bigint, `at` timestamp, `price` double, `state` string, `tags` array<string>, "
        "`buyer` struct<`mail`: string>, `extra` map<string, string>"
    )
    assert [condition.expect for condition in conditions] == [
        "`id` is not null",
        "`price` is null or (`price` > 0)",
        "`state` is null or (`state` in ('new', 'it\\'s'))",
        "`tags` is null or (size(`tags`) <= 3)",
        "`buyer` is null or (`buyer`.`mail` is not null)",
        "`buyer` is null or (`buyer`.`mail` is null or (`buyer`.`mail` rlike '@'))",
    ]
    assert conditions[0].name == "id is required"


@pytest.mark.parametrize(
    "schema",
    [
        [],
        {"type": "string"},
        {"properties": {"x": {}}},
        {"properties": {"x": {"type": ["string", "integer"]}}},
        {"properties": {"x": {"type": "array"}}},
        {"properties": {"x": {"$ref": "#/$defs/none"}}},
    ],
)
def test_a_json_schema_without_spark_types_is_unsupported(schema: object) -> None:
    with pytest.raises(json_schema.Unsupported):
        json_schema.convert(schema)


def test_lengths_of_time() -> None:
    assert milliseconds("1 hour 30 minutes") == 5_400_000
    assert milliseconds("250 milliseconds") == 250
    for text in ("", "10", "ten seconds", "1 second and more"):
        with pytest.raises(ValueError, match="a length of time"):
            milliseconds(text)
