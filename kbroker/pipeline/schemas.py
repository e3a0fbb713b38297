"""Schemas as Spark's DDL, from what the file says: a mapping of columns, or DDL itself.

No Spark here: types are checked by their spelling, so that `check` finds a typo without it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from kbroker.pipeline.suggestions import suggestion

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
_TOKEN = re.compile(r"\s*([A-Za-z_][A-Za-z0-9_]*|`(?:[^`]|``)+`|\d+|[<>(),:])")


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


def column_names(ddl: str) -> tuple[str, ...]:
    """The columns of "id bigint, amount double": id, amount"""
    return tuple(_Parser(ddl).columns())


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

    def columns(self) -> list[str]:
        names = []
        while True:
            names.append(self._name())
            if self._peek() == ":":
                self._take()
            self.type()
            self._constraints()
            if self._peek() is None:
                return names
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

    def _name(self) -> str:
        name = self._take()
        if name is None or not re.match(r"[A-Za-z_`]", name):
            raise self._error(f"a column's name is missing in {self._text!r}")
        return name[1:-1].replace("``", "`") if name.startswith("`") else name

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
