"""JSON objects one after the other, cut out of a body as it comes.

White space may stand between them, or nothing. An object that came whole is parsed where it stands. Of one
that did not, only the end is looked for, in each part once; it is parsed when that is there, or handed out
unparsed if it is long. One that has an end but is no JSON is told in its place, and the next goes on. What
cannot be told apart any more (NotJson, TooLong) is raised after all objects before it were handed out, and
ends the stream.
"""

from __future__ import annotations

import codecs
import json
import re
from typing import Any, Final

from kbroker.http.json_documents import AT_ONCE_BYTES

_TOKEN: Final = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+"|["{}]', re.DOTALL)
_IN_STRING: Final = re.compile(r'[^"\\]*+(?:\\.[^"\\]*+)*+', re.DOTALL)
_SPACE: Final = re.compile(r"[ \t\r\n]*+")
_parse = json.JSONDecoder().raw_decode


class NotJson(ValueError):
    """Something other than an object."""


class TooLong(ValueError):
    """An object is longer than it may be."""


class Malformed:
    """In the place of an object that is no JSON."""

    __slots__ = ("problem",)

    def __init__(self, error: Exception) -> None:
        self.problem = str(error)


class Unparsed:
    """In the place of an object that takes long to parse."""

    __slots__ = ("text",)

    def __init__(self, text: str) -> None:
        self.text = text


class JsonStream:
    def __init__(self, longest: int) -> None:
        """``longest``: how many characters an object may have."""
        self._longest = longest
        self._decoder = codecs.getincrementaldecoder("utf-8")("surrogateescape")
        self._parts: list[str] = []  # of an object that has not ended
        self.held = 0
        """How many characters they have."""
        self._depth = 0  # of its braces
        self._in_string = False
        self._escaped = False  # behind a backslash
        self._failure: ValueError | None = None

    def feed(self, data: bytes) -> list[Any]:
        """The objects that end with this part, in order; Malformed for what only looks like one."""
        text = self._decoder.decode(data)
        found: list[Any] = []
        if self._failure is None:
            try:
                self._cut(text, found)
            except (NotJson, TooLong) as failure:
                self._parts.clear()
                self.held = 0
                self._failure = failure
        if self._failure is not None and not found:
            raise self._failure
        return found

    def end(self) -> None:
        """There is no more. Raises NotJson if something is left."""
        if self._parts:
            raise NotJson("the last JSON object does not end")

    def _cut(self, text: str, found: list[Any]) -> None:
        start = 0
        if self._parts:
            start = self._end(text, 0)
            self._keep(text if start < 0 else text[:start])
            if start < 0:
                return
            whole = "".join(self._parts)
            self._parts.clear()
            self.held = 0
            found.append(_parsed(whole) if len(whole) <= AT_ONCE_BYTES else Unparsed(whole))
        while True:
            space = _SPACE.match(text, start)
            start = start if space is None else space.end()
            if start == len(text):
                return
            if text[start] != "{":
                raise NotJson("a JSON object is expected")
            try:
                document, end = _parse(text, start)
            except (ValueError, RecursionError) as error:
                end = self._end(text, start)
                if end < 0:
                    self._keep(text[start:])
                    return
                document = Malformed(error)
            if end - start > self._longest:
                raise self._too_long()
            found.append(document)
            start = end

    def _keep(self, part: str) -> None:
        self._parts.append(part)
        self.held += len(part)
        if self.held > self._longest:
            raise self._too_long()

    def _end(self, text: str, position: int) -> int:
        """The position behind the brace that closes the object; -1: it is not in this part."""
        if self._in_string:
            position = self._end_of_string(text, position)
            if position < 0:
                return -1
        for token in _TOKEN.finditer(text, position):
            sign = text[token.start()]
            if sign == "{":
                self._depth += 1
            elif sign == "}":
                self._depth -= 1
                if not self._depth:
                    return token.end()
            elif token.end() == token.start() + 1:  # of a string, the end of which is still to come
                self._in_string = True
                return self._end_of_string(text, token.end())
        return -1

    def _end_of_string(self, text: str, position: int) -> int:
        if self._escaped and position < len(text):
            self._escaped = False
            position += 1
        inside = _IN_STRING.match(text, position)
        position = position if inside is None else inside.end()
        if position == len(text):
            return -1
        if text[position] == "\\":
            self._escaped = True
            return -1
        self._in_string = False
        return position + 1

    def _too_long(self) -> TooLong:
        return TooLong(f"an object may have {self._longest} bytes at most")


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        return Malformed(error)
