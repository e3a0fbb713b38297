"""Schemas as Spark's DDL, from what the file may say instead: a mapping, DDL, or a JSON Schema.

No Spark here: types are checked by their spelling, so that `check` finds a typo without it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, NamedTuple

_SIMPLE = [
    "boolean",
    "tinyint",
    "byte",
    "smallint",
    "short",
    "int",
    "integer",
    "bigint",
    "long",
    "float",
    "real",
    "double",
    "date",
    "timestamp",
    "timestamp_ntz",
    "timestamp_ltz",
    "string",
    "binary",
    "variant",
]
_TOKEN = re.compile(r"\s*([A-Za-z_][A-Za-z0-9_]*|`[^`]+`|\d+|[<>(),:])")


class Unsupported(ValueError):
    """A JSON Schema that has no Spark type."""


class Condition(NamedTuple):
    name: str
    expect: str


def from_mapping(columns: Mapping[str, Any]) -> str:
    """{id: bigint, items: {sku: string}, tags: [string]} -> DDL"""
    if not columns:
        raise ValueError("a schema needs a column")
    return ", ".join(f"{quoted(name)} {_type(kind, name)}" for name, kind in columns.items())


def _type(kind: Any, name: str) -> str:
    if isinstance(kind, Mapping):
        fields = ", ".join(f"{quoted(inner)}: {_type(each, inner)}" for inner, each in kind.items())
        return f"struct<{fields}>"
    if isinstance(kind, list) and len(kind) == 1:
        return f"array<{_type(kind[0], name)}>"
    if not isinstance(kind, str):
        raise ValueError(f"column {name!r}: a Spark type, not {kind!r}")
    _check_type(kind, name)
    return kind


def from_ddl(text: str) -> str:
    """Check "id bigint, amount double" and return it."""
    parser = _Parser(text)
    parser.columns()
    return text


def quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def _check_type(text: str, name: str) -> None:
    parser = _Parser(text, f"column {name!r}: ")
    parser.type()
    parser.end()


class _Parser:
    """Recursive descent over Spark's types; raises ValueError where they are misspelled."""

    def __init__(self, text: str, prefix: str = "") -> None:
        self._prefix = prefix
        self._text = text
        self._tokens: list[str] = []
        position = 0
        text = text.rstrip()
        while position < len(text):
            token = _TOKEN.match(text, position)
            if token is None:
                raise self._error(f"cannot read {text[position : position + 20]!r}")
            self._tokens.append(token[1])
            position = token.end()
        self._next = 0

    def columns(self) -> None:
        while True:
            self._name()
            if self._peek() == ":":
                self._take()
            self.type()
            self._constraints()
            if self._peek() is None:
                return
            self._expect(",")

    def type(self) -> None:
        name = (self._take() or "").lower()
        if name == "array":
            self._expect("<")
            self.type()
            self._expect(">")
        elif name == "map":
            self._expect("<")
            self.type()
            self._expect(",")
            self.type()
            self._expect(">")
        elif name == "struct":
            self._struct()
        elif name in ("decimal", "dec", "numeric", "char", "varchar"):
            while self._peek() in ("(", ")", ",") or (self._peek() or "").isdigit():
                if self._peek() == "," and not self._inside_parenthesis():
                    break
                self._take()
        elif name not in _SIMPLE:
            from kbroker.pipeline.reading import suggestion

            known = [*_SIMPLE, "decimal", "array", "map", "struct"]
            raise self._error(f"{name!r} is no Spark type{suggestion(name, known)}")

    def end(self) -> None:
        if self._peek() is not None:
            raise self._error(f"unexpected {self._peek()!r} in {self._text!r}")

    def _struct(self) -> None:
        self._expect("<")
        while True:
            self._name()
            if self._peek() == ":":
                self._take()
            self.type()
            self._constraints()
            if self._peek() == ">":
                self._take()
                return
            self._expect(",")

    def _constraints(self) -> None:
        if (self._peek() or "").lower() == "not":
            self._take()
            if (self._take() or "").lower() != "null":
                raise self._error("NOT is followed by NULL")

    def _inside_parenthesis(self) -> bool:
        before = self._tokens[: self._next]
        return before.count("(") > before.count(")")

    def _name(self) -> None:
        name = self._take()
        if name is None or not re.match(r"[A-Za-z_`]", name):
            raise self._error(f"a column's name is missing in {self._text!r}")

    def _expect(self, token: str) -> None:
        found = self._take()
        if found != token:
            raise self._error(
                f"{token!r} is missing{f' before {found!r}' if found else ''} in {self._text!r}"
            )

    def _peek(self) -> str | None:
        return self._tokens[self._next] if self._next < len(self._tokens) else None

    def _take(self) -> str | None:
        token = self._peek()
        self._next += 1
        return token

    def _error(self, message: str) -> ValueError:
        return ValueError(self._prefix + message)


# JSON Schema

_SCALARS = {"string": "string", "integer": "bigint", "number": "double", "boolean": "boolean"}
_FORMATS = {"date-time": "timestamp", "date": "date"}


def from_json_schema(schema: Any) -> tuple[str, tuple[Condition, ...]]:
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
