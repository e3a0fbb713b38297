"""JSON documents parsed in turns with all other requests, whatever they look like.

A body is looked at through a window that moves over it. What fits into the window is parsed as it stands.
Lists and objects that do not are opened here, and their members parsed one after the other, or many at a
time: all that stand before the last comma in the window, where that is a comma of theirs. They become
LongList and LongDict, so that who works on them knows that they take long, and that all others do not. A text
that does not fit is parsed piece by piece.

What was tried in vain is not tried again: lists and objects that begin in a window into which one of them did
not fit are opened at once. So each byte is parsed a few times at most, however deep it lies.
"""

from __future__ import annotations

import json
import re
from codecs import utf_8_decode
from collections.abc import Callable, Iterable
from math import isfinite
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from kbroker.requests.long_requests import Steps

AT_ONCE_BYTES: Final = 32 * 1024
"""What is parsed without a pause."""
_WINDOW_BYTES: Final = 8 * 1024
LONG_TEXT: Final = _WINDOW_BYTES
"""The length of a text from which on it takes long."""
_ONE_BY_ONE: Final = 200  # members, before many are tried again in the same window
_DEEPEST: Final = 200  # long lists and objects within each other
_COUNTED_AT_ONCE: Final = 256 * 1024
_SPACE: Final = re.compile(r"[ \t\r\n]*+")
_PIECE: Final = re.compile(  # of a text: whole characters, and pairs of surrogates
    r'(?:[^"\\]++|\\u[dD][89abAB][0-9a-fA-F]{2}(?:\\u[dD][c-fC-F][0-9a-fA-F]{2}|(?=.{6}))'
    r"|\\u(?![dD][89abAB])[0-9a-fA-F]{4}|\\[^u])*+",
    re.DOTALL,
)
_LOOKED_AT: Final = 64  # members, between two pauses

Parse = Callable[[str, int], tuple[Any, int]]
_parse: Final[Parse] = json.JSONDecoder().raw_decode


class LongList(list[Any]):
    """One that was parsed in turns."""

    __slots__ = ()


class LongDict(dict[str, Any]):
    """The same of an object."""

    __slots__ = ()


def is_long(value: Any) -> bool:
    """Whether it takes long to do something with all of it."""
    kind = type(value)
    return kind is LongList or kind is LongDict or (kind is str and len(value) > LONG_TEXT)


def size_when_parsed(body: bytes) -> Steps[int]:
    """How many bytes of memory the document may take: mostly more, seldom a little less."""
    size = 0
    for start in range(0, len(body), _COUNTED_AT_ONCE):
        part = body[start : start + _COUNTED_AT_ONCE]
        size += len(part) * (1 if part.isascii() else 3)
        size += 30 * part.count(b'"') + 40 * part.count(b",") + 72 * part.count(b"[") + 232 * part.count(b"{")
        yield None
    return size


def parsed(body: bytes) -> Steps[Any]:
    """The document. ValueError, RecursionError: it is none."""
    return _Reader(body).document()


def parsed_strictly(body: bytes, deepest: int) -> Steps[Any]:
    """The same. ValueError: also if it cannot be written again as JSON, is null, or is nested more deeply."""
    document = yield from _Reader(body, _parse_strictly).document()
    if document is None or not (yield from _is_shallow(document, deepest)):
        raise ValueError("it is not shown as JSON")
    return document


def _is_shallow(document: Any, deepest: int) -> Steps[bool]:
    if type(document) is not LongList and type(document) is not LongDict:
        return not is_deep(document, deepest)
    members: Iterable[Any] = document.values() if isinstance(document, dict) else document
    for index, each in enumerate(members):
        if isinstance(each, list | dict):
            if not (yield from _is_shallow(each, deepest - 1)):
                return False
            yield None
        elif not index % _LOOKED_AT:
            yield None
    return deepest > 0


def is_deep(document: Any, deepest: int) -> bool:
    """Whether it has more lists and objects within each other."""
    level = [document]
    for _ in range(max(deepest, 0)):
        level = [
            inner
            for outer in level
            if isinstance(outer, dict | list)
            for inner in (outer.values() if isinstance(outer, dict) else outer)
        ]
        if not level:
            return False
    return any(isinstance(each, dict | list) for each in level)


def finite(text: str) -> float:
    number = float(text)
    if not isfinite(number):
        raise ValueError(f"{text} is beyond what can be written again")
    return number


def no_constant(text: str) -> Any:
    raise ValueError(f"JSON has no {text}")


_parse_strictly: Final = json.JSONDecoder(parse_float=finite, parse_constant=no_constant).raw_decode


class _Reader:
    def __init__(self, body: bytes, parse: Parse = _parse) -> None:
        self._parse = parse
        self._body = body
        self._begin = 0  # of the window, in the body
        self._text = ""  # in the window
        self._at = 0  # in the text
        self._complete = False  # whether the window reaches the end of the body
        self._open_before = 0  # lists and objects that begin before this place do not fit
        self._tried_many = -1  # the window in which many members were tried at a time the last time
        self._since = 0  # members one by one since then
        self._look()

    def document(self) -> Steps[Any]:
        opened: list[LongList | LongDict] = []
        names: list[str] = []  # of the members that are being parsed, of each object in `opened`
        while True:
            sign = yield from self._sign()
            value = yield from self._short_value(sign)
            if value is _TOO_LONG:
                if len(opened) == _DEEPEST:
                    raise RecursionError("long lists and objects are nested too deeply")
                self._at += 1
                value = LongList() if sign == "[" else LongDict()
                sign = yield from self._sign()
                if sign != ("]" if type(value) is LongList else "}"):
                    opened.append(value)
                    yield from self._begin_member(value, names)
                    continue
                self._at += 1
            while opened:
                outer = opened[-1]
                if type(outer) is LongList:
                    outer.append(value)
                else:
                    outer[names.pop()] = value  # type: ignore[call-overload]
                sign = yield from self._sign()
                self._at += 1
                if sign == ",":
                    yield from self._begin_member(outer, names)
                    break
                if sign != ("]" if type(outer) is LongList else "}"):
                    raise self._wrong("Expecting ',' delimiter", -1)
                value = opened.pop()
            else:
                if (yield from self._sign()):
                    raise self._wrong("Extra data")
                return value

    def _begin_member(self, outer: LongList | LongDict, names: list[str]) -> Steps[None]:
        """Stand before a value of a list or object, behind the members that are parsed together."""
        sign = yield from self._sign()
        self._since += 1
        while (self._tried_many != self._begin or self._since > _ONE_BY_ONE) and self._take_many(outer, sign):
            yield None
            sign = yield from self._sign()
        if type(outer) is LongList:
            return
        if sign != '"':
            raise self._wrong("Expecting property name enclosed in double quotes")
        names.append((yield from self._short_value(sign)))
        if (yield from self._sign()) != ":":
            raise self._wrong("Expecting ':' delimiter")
        self._at += 1

    def _take_many(self, outer: LongList | LongDict, sign: str) -> bool:
        """Whether there were some before the last comma in the window: it is behind that now."""
        self._tried_many, self._since = self._begin, 0
        if self._complete:
            return False
        objects = type(outer) is LongList and sign == "{"
        comma = self._text.rfind("},", self._at) + 1 if objects else self._text.rfind(",", self._at)
        if comma <= self._at:
            return False
        brackets = "[]" if type(outer) is LongList else "{}"
        text = brackets[0] + self._text[self._at : comma] + brackets[1]
        try:
            some, end = self._parse(text, 0)
        except (ValueError, RecursionError):
            return False
        if not some or end < len(text):  # nothing is before the comma, or it is not theirs
            return False
        if type(outer) is LongList:
            outer.extend(some)
        else:
            outer |= some
        self._at = comma + 1
        return True

    def _short_value(self, sign: str) -> Steps[Any]:
        """One that begins here; _TOO_LONG: it is a list or object that is to be opened."""
        while True:
            nests = sign == "[" or sign == "{"  # noqa: PLR1714  # in "" is true of nothing
            if nests and self._begin + self._at < self._open_before:
                return _TOO_LONG
            try:
                value, end = self._parse(self._text, self._at)
            except ValueError as error:
                if self._complete or (self._at == 0 and not nests and sign != '"'):
                    raise self._located(error) from None
            else:
                behind = 3 if type(value) is int or type(value) is float else 0  # "1" may be of "1e+5"
                if end + behind < len(self._text) or self._complete:
                    self._at = end
                    return value
            if self._at:
                self._look()
                yield None
            elif sign == '"':
                return (yield from self._long_text())
            elif nests:
                self._open_before = self._begin + len(self._text)
                return _TOO_LONG
            else:
                raise self._wrong("a number is too long")

    def _long_text(self) -> Steps[str]:
        pieces: list[str] = []
        self._at = 1
        while not self._complete:
            found = _PIECE.match(self._text, self._at)
            assert found is not None
            end = found.end()
            if end < len(self._text) and (self._text[end] == '"' or end == self._at):
                break
            pieces.append(self._piece(self._text[self._at : end] + '"')[0])
            self._at = end
            self._look()
            yield None
        piece, end = self._piece(self._text[self._at :])
        self._at += end - 1
        pieces.append(piece)
        return "".join(pieces)

    def _piece(self, text: str) -> tuple[str, int]:
        try:
            return self._parse(f'"{text}', 0)
        except ValueError as error:
            raise self._located(error) from None

    def _sign(self) -> Steps[str]:
        """What stands behind the space that follows; empty: it is the end."""
        while True:
            space = _SPACE.match(self._text, self._at)
            assert space is not None
            self._at = space.end()
            if self._at < len(self._text):
                return self._text[self._at]
            if self._complete:
                return ""
            self._look()
            yield None

    def _look(self) -> None:
        """Move the window to where it stands."""
        self._begin += self._bytes_before(self._at)
        self._at = 0
        end = self._begin + _WINDOW_BYTES
        self._complete = end >= len(self._body)
        self._text, _ = utf_8_decode(self._body[self._begin : end], "strict", self._complete)

    def _bytes_before(self, at: int) -> int:
        return at if self._text.isascii() else len(self._text[:at].encode())

    def _wrong(self, what: str, offset: int = 0) -> ValueError:
        place = self._begin + self._bytes_before(max(self._at + offset, 0))
        return ValueError(f"{what}: byte {place}")

    def _located(self, error: ValueError) -> ValueError:
        if not isinstance(error, json.JSONDecodeError):
            return error
        return ValueError(
            f"{error.msg}: byte {self._begin + self._bytes_before(min(error.pos, len(self._text)))}"
        )


_TOO_LONG: Final = object()
