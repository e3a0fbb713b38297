"""What can be known of a SQL step without Spark: the views it reads, whether it keeps state, whether its
quotes and brackets close.

A token is a word, a quoted name or text, or one character. Only a bracket that begins a query has FROMs that
name views: extract(hour FROM x) does not.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

_TOKEN = re.compile(
    r"""(?P<skip>\s+|--[^\n]*|/\*.*?\*/)
      | (?P<text>'(?:[^'\\]|\\.|'')*'|"(?:[^"\\]|\\.|"")*")
      | (?P<name>`(?:[^`]|``)*`)
      | (?P<word>[A-Za-z_][A-Za-z0-9_]*)
      | (?P<other>.)""",
    re.VERBOSE | re.DOTALL,
)
_AGGREGATES = frozenset(
    [
        "count",
        "sum",
        "avg",
        "mean",
        "min",
        "max",
        "first",
        "last",
        "any_value",
        "collect_list",
        "collect_set",
        "approx_count_distinct",
        "stddev",
        "variance",
        "percentile",
        "percentile_approx",
        "max_by",
        "min_by",
        "bool_and",
        "bool_or",
        "every",
        "some",
    ]
)
_QUERY_STARTS = frozenset({"select", "with", "from"})
_AFTER_TABLE = frozenset(
    [
        "where",
        "group",
        "having",
        "order",
        "limit",
        "union",
        "intersect",
        "except",
        "join",
        "inner",
        "left",
        "right",
        "full",
        "cross",
        "semi",
        "anti",
        "natural",
        "lateral",
        "on",
        "using",
        "window",
        "select",
        "tablesample",
        "pivot",
        "unpivot",
        "qualify",
    ]
)


class Token(NamedTuple):
    kind: str
    text: str
    line: int

    @property
    def word(self) -> str:
        return self.text.lower() if self.kind == "word" else ""


class Malformed(ValueError):
    """Brackets or quotes that do not close; `line` counts from the first line of the text as 0."""

    def __init__(self, line: int, message: str) -> None:
        super().__init__(message)
        self.line = line


class Reference(NamedTuple):
    name: str
    line: int


class Query(NamedTuple):
    references: tuple[Reference, ...]
    aggregates: bool
    """GROUP BY, DISTINCT or an aggregate function: Spark keeps state for it."""
    joins: bool
    words: frozenset[str]


def tokens(text: str) -> list[Token]:
    found, line = [], 0
    for match in _TOKEN.finditer(text):
        kind = match.lastgroup or "other"
        if kind == "other" and match[0] in "'\"`":
            raise Malformed(line, f"the quote {match[0]} is not closed")
        if kind != "skip":
            found.append(Token(kind, match[0], line))
        line += match[0].count("\n")
    return found


def analyse(text: str) -> Query:
    found = tokens(text)
    _check_brackets(found)
    if not found or found[0].word not in _QUERY_STARTS:
        raise Malformed(found[0].line if found else 0, "a step's SQL is a query: SELECT … FROM …")
    own_names = {name.lower() for name in _common_table_names(found)}
    references = tuple(
        reference for reference in _references(found) if reference.name.lower() not in own_names
    )
    words = [token.word for token in found]
    return Query(
        references, _aggregates(found), "join" in words or _comma_join(found), frozenset(words) - {""}
    )


def _check_brackets(found: list[Token]) -> None:
    stack: list[Token] = []
    for token in found:
        if token.text == "(":
            stack.append(token)
        elif token.text == ")":
            if not stack:
                raise Malformed(token.line, "a bracket closes that was never opened")
            stack.pop()
    if stack:
        raise Malformed(stack[-1].line, "a bracket is not closed")


def _common_table_names(found: list[Token]) -> Iterator[str]:
    """x in WITH x AS (…), y AS (…)"""
    for index in range(len(found) - 2):
        if (
            found[index].kind in ("word", "name")
            and found[index + 1].word == "as"
            and found[index + 2].text == "("
        ):
            yield found[index].text.strip("`")


def _references(found: list[Token]) -> Iterator[Reference]:
    """Names after FROM and JOIN, and after a comma of a FROM's list, in queries only."""
    in_query, expecting, listing = [True], False, [False]
    for index, token in enumerate(found):
        following = found[index + 1] if index + 1 < len(found) else None
        if token.text == "(":
            in_query.append(following is not None and following.word in _QUERY_STARTS)
            listing.append(False)
            expecting = False
        elif token.text == ")":
            in_query.pop()
            listing.pop()
        elif not in_query[-1]:
            continue
        elif token.word in ("from", "join"):
            previous = found[index - 1].word if index else ""
            distinct = token.word == "from" and previous == "distinct"  # IS DISTINCT FROM
            expecting, listing[-1] = not distinct, listing[-1] or not distinct
        elif expecting and token.word == "lateral":
            expecting = False
        elif expecting and token.kind in ("word", "name"):
            expecting = False
            if following is None or following.text not in (".", "("):
                yield Reference(token.text.strip("`"), token.line)
        elif token.text == "," and listing[-1]:
            expecting = True
        elif token.word in _AFTER_TABLE:
            listing[-1] = False
            expecting = False


def _aggregates(found: list[Token]) -> bool:
    for index, token in enumerate(found):
        following = found[index + 1] if index + 1 < len(found) else None
        previous = found[index - 1].word if index else ""
        if token.word == "group" and following is not None and following.word == "by":
            return True
        if token.word == "distinct" and previous == "select":
            return True
        if token.word in _AGGREGATES and following is not None and following.text == "(":
            end = _closing(found, index + 1)
            if end + 1 >= len(found) or found[end + 1].word != "over":
                return True
    return False


def _closing(found: list[Token], opening: int) -> int:
    depth = 0
    for index in range(opening, len(found)):
        depth += {"(": 1, ")": -1}.get(found[index].text, 0)
        if depth == 0:
            return index
    return len(found)


def _comma_join(found: list[Token]) -> bool:
    return len({reference.name for reference in _references(found)}) > 1 and "union" not in {
        token.word for token in found
    }
