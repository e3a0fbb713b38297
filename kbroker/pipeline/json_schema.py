"""JSON Schema as Spark's DDL, and what it asks for beyond types as conditions in SQL."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

from kbroker.pipeline.schemas import quoted


class Unsupported(ValueError):
    """A JSON Schema that has no Spark type."""


class Condition(NamedTuple):
    name: str
    expect: str


_SCALARS = {"string": "string", "integer": "bigint", "number": "double", "boolean": "boolean"}
_FORMATS = {"date-time": "timestamp", "date": "date"}


def convert(schema: Any) -> tuple[str, tuple[Condition, ...]]:
    """DDL, and the conditions that go beyond types: required, enum, const, bounds, lengths, pattern."""
    if not isinstance(schema, Mapping) or not isinstance(schema.get("properties"), Mapping):
        raise Unsupported("the schema describes an object with properties")
    definitions = {**schema.get("definitions", {}), **schema.get("$defs", {})}
    converter = _JsonSchema(definitions)
    columns = converter.fields(schema)
    ddl = ", ".join(f"{quoted(name)} {kind}" for name, kind in columns)
    return ddl, tuple(converter.conditions(schema, ""))


class _JsonSchema:
    def __init__(self, definitions: Mapping[str, Any]) -> None:
        self._definitions = definitions

    def fields(self, schema: Mapping[str, Any]) -> list[tuple[str, str]]:
        return [(name, self._type(each, name)) for name, each in schema["properties"].items()]

    def _resolved(self, schema: Mapping[str, Any]) -> Mapping[str, Any]:
        reference = schema.get("$ref")
        if reference is None:
            return schema
        name = str(reference).rsplit("/", 1)[-1]
        if name not in self._definitions:
            raise Unsupported(f"$ref {reference!r} is not in $defs")
        resolved: Mapping[str, Any] = self._definitions[name]
        return resolved

    def _kind(self, schema: Mapping[str, Any], name: str) -> str:
        kind = schema.get("type")
        if isinstance(kind, list):
            kinds = [each for each in kind if each != "null"]
            kind = kinds[0] if len(kinds) == 1 else None
        if kind is None and "enum" in schema:
            kind = "string" if all(isinstance(each, str) for each in schema["enum"]) else "number"
        if kind is None:
            raise Unsupported(f"property {name!r} needs one type")
        return str(kind)

    def _type(self, schema: Mapping[str, Any], name: str) -> str:
        schema = self._resolved(schema)
        kind = self._kind(schema, name)
        if kind == "object":
            if isinstance(schema.get("properties"), Mapping):
                fields = ", ".join(f"{quoted(inner)}: {each}" for inner, each in self.fields(schema))
                return f"struct<{fields}>"
            values = schema.get("additionalProperties")
            return f"map<string, {self._type(values, name) if isinstance(values, Mapping) else 'string'}>"
        if kind == "array":
            if not isinstance(schema.get("items"), Mapping):
                raise Unsupported(f"property {name!r} needs items")
            return f"array<{self._type(schema['items'], name)}>"
        if kind == "string":
            return _FORMATS.get(str(schema.get("format")), "string")
        if kind not in _SCALARS:
            raise Unsupported(f"property {name!r}: there is no Spark type for {kind!r}")
        return _SCALARS[kind]

    def conditions(self, schema: Mapping[str, Any], prefix: str) -> list[Condition]:
        found = []
        required = set(schema.get("required", ()))
        for name, each in schema["properties"].items():
            each = self._resolved(each)
            column, shown = prefix + quoted(name), (prefix + name).replace("`", "")
            if name in required:
                found.append(Condition(f"{shown} is required", f"{column} is not null"))
            found += [
                Condition(f"{shown} {text}", f"{column} is null or ({condition})")
                for text, condition in _bounds(each, column)
            ]
            if each.get("type") == "object" and isinstance(each.get("properties"), Mapping):
                inner = self.conditions(each, f"{column}.")
                found += [Condition(c.name, f"{column} is null or ({c.expect})") for c in inner]
        return found


def _bounds(schema: Mapping[str, Any], column: str) -> list[tuple[str, str]]:
    found = []
    if "enum" in schema:
        listed = ", ".join(_literal(each) for each in schema["enum"] if each is not None)
        found.append((f"is one of {listed}", f"{column} in ({listed})"))
    if "const" in schema:
        found.append((f"is {schema['const']}", f"{column} = {_literal(schema['const'])}"))
    for keyword, operator in (
        ("minimum", ">="), ("maximum", "<="), ("exclusiveMinimum", ">"), ("exclusiveMaximum", "<")
    ):  # fmt: skip
        if isinstance(schema.get(keyword), int | float) and not isinstance(schema[keyword], bool):
            found.append((f"{operator} {schema[keyword]}", f"{column} {operator} {schema[keyword]}"))
    for keyword, function, operator in (
        ("minLength", "length", ">="), ("maxLength", "length", "<="),
        ("minItems", "size", ">="), ("maxItems", "size", "<="),
    ):  # fmt: skip
        if keyword in schema:
            found.append(
                (
                    f"{function} {operator} {schema[keyword]}",
                    f"{function}({column}) {operator} {schema[keyword]}",
                )
            )
    if "pattern" in schema:
        found.append((f"matches {schema['pattern']}", f"{column} rlike {_literal(schema['pattern'])}"))
    return found


def _literal(value: Any) -> str:
    if isinstance(value, str):
        return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"
    return json.dumps(value)
