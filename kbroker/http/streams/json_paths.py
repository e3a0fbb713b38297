"""Conditions on JSON documents: a small part of JSONPath (RFC 9535).

    $.order.items[0].sku                    there is such a node, be it null
    $.order['total amount'] >= 100          its value compares so with a literal

A path has members (`.name`, `['name']`, `["name"]`) and indexes (`[0]`, `[-1]` from the end), and leads to
one node at most: a singular query. A comparison is one of RFC 9535 (section 2.3.5.2.2): values of different
types are not equal, only numbers and strings have an order, and nothing (a path that leads nowhere) equals
no literal. A literal is a number, a string, true, false or null.

What a condition costs is bounded by its length, of which there is a limit.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any, Final, NamedTuple

LONGEST: Final = 1000  # characters
_MOST_INDEX: Final = (1 << 53) - 1
_SPACE: Final = re.compile(r"[ \t\r\n]*")
_NAME: Final = re.compile(
    r"[A-Za-z_\u0080-\ud7ff\ue000-\U0010ffff][0-9A-Za-z_\u0080-\ud7ff\ue000-\U0010ffff]*"
)
_INDEX: Final = re.compile(r"0|-?[1-9][0-9]*")
_SINGLE_QUOTED: Final = re.compile(r"'(?:[^'\\\x00-\x1f]|\\.)*'")
_DOUBLE_QUOTED: Final = re.compile(r'"(?:[^"\\\x00-\x1f]|\\.)*"')
_OPERATOR: Final = re.compile(r"==|!=|<=|>=|<|>")
_NOTHING: Final = object()


class BadPath(ValueError):
    """What is wrong, and where."""


class JsonCondition(NamedTuple):
    steps: tuple[str | int, ...]
    compares: Callable[[Any], bool] | None
    """What its node must fulfil; None: it need only be there."""

    def holds(self, document: Any) -> bool:
        node = _node(document, self.steps)
        return node is not _NOTHING if self.compares is None else self.compares(node)


def parsed(text: str) -> JsonCondition:
    """Raises BadPath."""
    if len(text) > LONGEST:
        raise BadPath(f"a condition may have {LONGEST} characters")
    return _Parser(text).condition()


def _node(document: Any, steps: tuple[str | int, ...]) -> Any:
    node = document
    for step in steps:
        if isinstance(step, str):
            if not isinstance(node, dict) or step not in node:
                return _NOTHING
        elif not isinstance(node, list) or not -len(node) <= step < len(node):
            return _NOTHING
        node = node[step]
    return node


class _Parser:
    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0

    def condition(self) -> JsonCondition:
        self._space()
        if not self._take("$"):
            raise self._bad("a path begins with $")
        steps: list[str | int] = []
        while True:
            self._space()
            if self._take("."):
                steps.append(self._member())
            elif self._take("["):
                steps.append(self._bracketed())
            else:
                break
        compares = self._comparison()
        if self._at < len(self._text):
            raise self._bad("the condition should end here")
        return JsonCondition(tuple(steps), compares)

    def _member(self) -> str:
        name = self._match(_NAME)
        if name is None:
            raise self._bad("the name of a member is expected; one of other characters stands in ['…']")
        return name

    def _bracketed(self) -> str | int:
        self._space()
        step: str | int | None = self._string()
        if step is None:
            index = self._match(_INDEX)
            if index is None:
                raise self._bad("an index or a name in quotes is expected")
            if len(index) > 17 or abs(int(index)) > _MOST_INDEX:
                raise self._bad(f"an index is at most {_MOST_INDEX}")
            step = int(index)
        self._space()
        if not self._take("]"):
            raise self._bad("] is expected")
        return step

    def _comparison(self) -> Callable[[Any], bool] | None:
        operator = self._match(_OPERATOR)
        if operator is None:
            return None
        self._space()
        literal = self._literal()
        self._space()
        compare = _COMPARISONS[operator]
        return lambda value: compare(value, literal)

    def _literal(self) -> Any:
        text = self._string()
        if text is not None:
            return text
        if self._text[self._at : self._at + 1] in ("{", "["):
            raise self._bad("a literal is a number, a string, true, false or null")
        try:
            literal, self._at = _LITERALS.raw_decode(self._text, self._at)
        except ValueError:
            raise self._bad("a number, a string in quotes, true, false or null is expected") from None
        return literal

    def _string(self) -> str | None:
        """In either quotes, with the escapes of JSON."""
        begin = self._at
        quoted = self._match(_SINGLE_QUOTED)
        if quoted is not None:
            inner = quoted[1:-1].replace("\\'", "'").replace('"', '\\"')
            quoted = f'"{inner}"'
        else:
            quoted = self._match(_DOUBLE_QUOTED)
        if quoted is None:
            return None
        try:
            return str(json.loads(quoted))
        except ValueError:
            self._at = begin
            raise self._bad("the string has an escape that JSON does not know") from None

    def _take(self, character: str) -> bool:
        taken = self._text.startswith(character, self._at)
        self._at += taken
        return taken

    def _match(self, pattern: re.Pattern[str]) -> str | None:
        found = pattern.match(self._text, self._at)
        if found is None:
            return None
        self._at = found.end()
        return found.group()

    def _space(self) -> None:
        self._match(_SPACE)

    def _bad(self, what: str) -> BadPath:
        return BadPath(f"{what}, at character {self._at + 1}")


def _no_constant(text: str) -> Any:
    raise ValueError(text)


_LITERALS: Final = json.JSONDecoder(parse_constant=_no_constant)


def _equal(value: Any, literal: Any) -> bool:
    if isinstance(literal, bool) or isinstance(value, bool):
        return value is literal
    if _is_number(literal):
        return _is_number(value) and bool(value == literal)
    return type(value) is type(literal) and bool(value == literal)


def _less(value: Any, other: Any) -> bool:
    if _is_number(value) and _is_number(other):
        return bool(value < other)
    return isinstance(value, str) and isinstance(other, str) and value < other


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


_COMPARISONS: Final[dict[str, Callable[[Any, Any], bool]]] = {
    "==": _equal,
    "!=": lambda value, literal: not _equal(value, literal),
    "<": _less,
    "<=": lambda value, literal: _less(value, literal) or _equal(value, literal),
    ">": lambda value, literal: _less(literal, value),
    ">=": lambda value, literal: _less(literal, value) or _equal(value, literal),
}
