"""JSON documents parsed in turns with all other requests: a long list is parsed entry by entry."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from kbroker.requests.long_requests import Steps

AT_ONCE_BYTES: Final = 32 * 1024
"""What is parsed without a pause."""
_PER_PAUSE: Final = 16
_SPACE: Final = re.compile(r"[ \t\r\n]*+")
_parse: Final = json.JSONDecoder().raw_decode


def parsed(body: bytes) -> Steps[Any]:
    """The document. ValueError, RecursionError: it is none.

    Lists are parsed in turns if they are the document, or members of an object that is.
    """
    text = body.decode()
    value: Any
    at = _behind_space(text, 0)
    if text[at : at + 1] == "[":
        value, at = yield from _list(text, at)
    elif text[at : at + 1] == "{":
        value, at = yield from _object(text, at)
    else:
        value, at = _parse(text, at)
    at = _behind_space(text, at)
    if at != len(text):
        raise json.JSONDecodeError("Extra data", text, at)
    return value


def _list(text: str, at: int) -> Steps[tuple[list[Any], int]]:
    entries: list[Any] = []
    at = _behind_space(text, at + 1)
    if text[at : at + 1] == "]":
        return entries, at + 1
    while True:
        entry, at = _parse(text, at)
        entries.append(entry)
        if not len(entries) % _PER_PAUSE:
            yield None
        at = _behind_space(text, at)
        if text[at : at + 1] == "]":
            return entries, at + 1
        at = _behind(text, at, ",")


def _object(text: str, at: int) -> Steps[tuple[dict[str, Any], int]]:
    members: dict[str, Any] = {}
    at = _behind_space(text, at + 1)
    if text[at : at + 1] == "}":
        return members, at + 1
    while True:
        if text[at : at + 1] != '"':
            raise json.JSONDecodeError("Expecting property name enclosed in double quotes", text, at)
        name, at = _parse(text, at)
        at = _behind(text, _behind_space(text, at), ":")
        if text[at : at + 1] == "[":
            members[name], at = yield from _list(text, at)
        else:
            members[name], at = _parse(text, at)
        at = _behind_space(text, at)
        if text[at : at + 1] == "}":
            return members, at + 1
        at = _behind(text, at, ",")


def _behind(text: str, at: int, expected: str) -> int:
    """Behind this character and the space after it."""
    if text[at : at + 1] != expected:
        raise json.JSONDecodeError(f"Expecting '{expected}' delimiter", text, at)
    return _behind_space(text, at + 1)


def _behind_space(text: str, at: int) -> int:
    found = _SPACE.match(text, at)
    assert found is not None
    return found.end()
