"""Records as JSON: how endpoints that publish read them, and how those that fetch and stream write them.

    {"key": "user-1", "value": {"amount": 3}, "headers": [{"key": "trace", "value": "a1"}],
     "timestamp": 1700000000000}

The name of a field says how it is encoded, in both directions:

    key             text, stored as UTF-8           value           any JSON, stored as compact JSON
    keyJson         any JSON                        valueText       text, stored as UTF-8
    keyBase64       bytes                           valueBase64     bytes

- Of each column a record has at most one. No key is none of them, or ``"key": null``. A value must be given:
  ``"value": null`` is a tombstone. The JSON document ``null`` is ``"valueText": "null"``.
- Headers are a list, because a name may come twice: objects with ``key`` or ``keyBase64``, and ``value``
  (text or null) or ``valueBase64``. Who writes may give an object of names and texts instead.
- ``timestamp`` is in ms; a record without one gets the time of its arrival. ``partition`` may stand in a
  record that does not go to a given one.
- Who reads chooses an encoding for keys and one for values. What does not have that form comes as text, and
  what is no text either as base64. What was read may be written again: text and base64 give the same bytes,
  JSON the same document (spaces go, and a number may be written another way).

A mistake is told with its place: ``records[3].headers[0].value``.
"""

from __future__ import annotations

import json
from base64 import b64encode
from binascii import Error as Base64Error
from binascii import a2b_base64
from collections.abc import Callable
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final

from kbroker.http.compact_json import compact, compact_bytes, compact_in_steps
from kbroker.http.json_documents import LongDict, LongList, finite, is_deep, is_long, no_constant
from kbroker.operations.publishing import NewRecord
from kbroker.protocol.records import Headers, Record

if TYPE_CHECKING:
    from kbroker.requests.long_requests import Steps

_MAX_TIMESTAMP: Final = 2**63 - 1
_MAX_PARTITION: Final = 2**31 - 1
_DEEPEST: Final = 100  # lists and objects within each other: far below what Python's stack allows
_CONVERTED_AT_ONCE: Final = 64 * 1024  # characters; whole groups of base64
_HEADERS_AT_ONCE: Final = 64
_MOST_HEADERS: Final = 10_000  # of a record with many
NOTHING_MORE: Final[frozenset[str]] = frozenset()


class Encoding(StrEnum):
    """How a reader wants keys or values."""

    JSON = "json"
    TEXT = "text"
    BASE64 = "base64"


class BadRecord(ValueError):
    """A record is not written as it must be: ``problem`` says what is expected, ``place`` where."""

    def __init__(self, problem: str, place: str = "") -> None:
        super().__init__(f"{place}: {problem}" if place else problem)
        self.problem = problem
        self.place = place

    def within(self, outer: str) -> BadRecord:
        """The same, seen from outside."""
        dot = "." if self.place and not self.place.startswith("[") else ""
        return BadRecord(self.problem, outer + dot + self.place)


# from JSON


def value_of(given: Any, now_ms: int) -> NewRecord:
    """A record that is nothing but its value, in base64."""
    return NewRecord(Record(now_ms, None, _base64_to_bytes(given)), None)


def record_of(given: Any, now_ms: int, more_fields: frozenset[str] = NOTHING_MORE) -> NewRecord:
    """One record; the places of mistakes are within it."""
    if not isinstance(given, dict):
        raise BadRecord(f"a record is an object with a value, not {_kind(given)}")
    key: bytes | None = None
    value: bytes | None = None
    key_name = value_name = ""
    timestamp = now_ms
    headers: Headers = ()
    partition: int | None = None
    name = ""
    try:
        for name, content in given.items():
            if (convert := _VALUES.get(name)) is not None:
                if value_name:
                    raise BadRecord(f"a record has one value, and this one has {value_name}")
                value_name = name
                if content is not None:
                    value = convert(content)
            elif (convert := _KEYS.get(name)) is not None:
                if key_name:
                    raise BadRecord(f"a record has one key, and this one has {key_name}")
                key_name = name
                if content is not None:
                    key = convert(content)
            elif name == "timestamp":
                timestamp = _integer(content, _MAX_TIMESTAMP, "milliseconds since 1970")
            elif name == "headers":
                headers = _headers_of(content)
            elif name == "partition":
                if content is not None:
                    partition = _integer(content, _MAX_PARTITION, "the number of a partition")
            elif name not in more_fields:
                raise BadRecord(f"a record has no such field, but {_names(_FIELDS | more_fields)}")
    except BadRecord as error:
        raise error.within(name) from None
    if not value_name:
        raise BadRecord(f"a value is expected: one of {_names(_VALUES)}; null is a tombstone")
    return NewRecord(Record(timestamp, key, value, headers), partition)


def long_record_of(
    given: LongDict, now_ms: int, more_fields: frozenset[str] = NOTHING_MORE
) -> Steps[NewRecord]:
    """The same of one that takes long: what is long of it is left out first, and then put in."""
    short, long = dict(given), {}
    for name, content in given.items():
        if is_long(content) and (left_out := _left_out(name, content)) is not None:
            short[name], long[name] = left_out, content
    new = record_of(short, now_ms, more_fields)
    record = new.record
    for name, content in long.items():
        try:
            if name == "headers":
                record = record._replace(headers=(yield from _long_headers(content)))
            elif name in _KEYS:
                record = record._replace(key=(yield from long_bytes(name, content)))
            else:
                record = record._replace(value=(yield from long_bytes(name, content)))
        except BadRecord as error:
            raise error.within(name) from None
    return NewRecord(record, new.partition)


def _left_out(name: str, content: Any) -> Any:
    """What stands in the place of something long; None: this is not what may stand here."""
    if name in ("value", "keyJson"):
        return 0
    if name == "headers":
        return None if isinstance(content, str) else []
    return "" if isinstance(content, str) and name in _KEYS | _VALUES else None


def long_bytes(name: str, content: Any) -> Steps[bytes]:
    """What stands in a field of this name."""
    if name in ("value", "keyJson"):
        try:
            return (yield from compact_in_steps(content))
        except ValueError:
            raise BadRecord("JSON has no NaN and no Infinity") from None
        except RecursionError:
            raise BadRecord("lists and objects are nested too deeply") from None
    convert = _base64_to_bytes if name.endswith("Base64") else _text_to_bytes
    parts: list[bytes] = []
    for start in range(0, len(content), _CONVERTED_AT_ONCE):
        part = content[start : start + _CONVERTED_AT_ONCE]
        if convert is _base64_to_bytes and start + len(part) < len(content) and part.endswith("="):
            raise BadRecord("this is no base64: something is behind its end")
        parts.append(convert(part))
        yield None
    return b"".join(parts)


def _long_headers(given: Any) -> Steps[Headers]:
    if len(given) > _MOST_HEADERS:
        raise BadRecord(f"a record may have {_MOST_HEADERS} headers at most")
    made: list[tuple[str, bytes | None]] = []
    items = list(given.items()) if isinstance(given, dict) else given
    for start in range(0, len(items), _HEADERS_AT_ONCE):
        some = items[start : start + _HEADERS_AT_ONCE]
        try:
            made += _headers_of(dict(some) if isinstance(given, dict) else some)
        except BadRecord as error:
            raise error if isinstance(given, dict) else _moved(error, start) from None
        yield None
    return tuple(made)


def _moved(error: BadRecord, by: int) -> BadRecord:
    """A mistake in one of the headers behind others."""
    index, bracket, rest = error.place[1:].partition("]")
    return BadRecord(error.problem, f"[{int(index) + by}{bracket}{rest}")


def _headers_of(given: Any) -> Headers:
    if isinstance(given, dict):
        return tuple(
            (_header_key(name, name), _header_text(name, content)) for name, content in given.items()
        )
    if not isinstance(given, list):
        raise BadRecord(f"a list of headers is expected, or an object of names and texts, not {_kind(given)}")
    made: list[tuple[str, bytes | None]] = []
    try:
        for each in given:
            made.append(_header_of(each))  # noqa: PERF401  # their number is the place of a mistake
    except BadRecord as error:
        raise error.within(f"[{len(made)}]") from None
    return tuple(made)


def _header_of(given: Any) -> tuple[str, bytes | None]:
    if not isinstance(given, dict):
        raise BadRecord(f"a header is an object with key and value, not {_kind(given)}")
    if len(given) != 2 or not given.keys() <= _HEADER_FIELDS or ("key" in given) == ("keyBase64" in given):
        raise BadRecord('a header has "key" (or "keyBase64") and "value" (or "valueBase64"), nothing else')
    name = key = ""
    value: bytes | None = None
    try:
        for name, content in given.items():
            if name == "key":
                key = _header_key("", content)
            elif name == "keyBase64":
                key = _base64_to_bytes(content).decode("utf-8", "surrogateescape")
            elif content is not None:
                value = _text_to_bytes(content) if name == "value" else _base64_to_bytes(content)
    except BadRecord as error:
        raise error.within(name) from None
    return key, value


def _header_key(place: str, given: Any) -> str:
    try:
        _text_to_bytes(given)
    except BadRecord as error:
        raise error.within(place) from None
    return str(given)


def _header_text(name: str, given: Any) -> bytes | None:
    try:
        return None if given is None else _text_to_bytes(given)
    except BadRecord as error:
        raise error.within(name) from None


def _text_to_bytes(given: Any) -> bytes:
    if not isinstance(given, str):
        raise BadRecord(f"text is expected, not {_kind(given)}")
    try:
        return given.encode()
    except UnicodeEncodeError:
        raise BadRecord("the text has half of a surrogate pair, which UTF-8 does not know") from None


def _base64_to_bytes(given: Any) -> bytes:
    if not isinstance(given, str):
        raise BadRecord(f"base64 is expected, in a string, not {_kind(given)}")
    try:
        return a2b_base64(given, strict_mode=True)
    except (Base64Error, ValueError) as error:
        raise BadRecord(f"this is no base64: {error}") from None


def _json_to_bytes(given: Any) -> bytes:
    try:
        return compact_bytes(given)
    except ValueError:
        raise BadRecord("JSON has no NaN and no Infinity") from None
    except RecursionError:
        raise BadRecord("lists and objects are nested too deeply") from None


def _integer(given: Any, largest: int, what: str) -> int:
    if type(given) is not int or not 0 <= given <= largest:
        shown = given if isinstance(given, int | float) else _kind(given)
        raise BadRecord(f"{what} are expected, an integer from 0 to {largest}, not {shown}")
    return given


def _kind(given: Any) -> str:
    return _KINDS.get(type(given), "this")


def _names(fields: Any) -> str:
    return ", ".join(sorted(fields))


_KINDS: Final[dict[type, str]] = {
    dict: "an object",
    list: "a list",
    LongDict: "an object",
    LongList: "a list",
    str: "a text",
    bool: "true or false",
    int: "a number",
    float: "a number",
    type(None): "null",
}
_KEYS: Final[dict[str, Callable[[Any], bytes]]] = {
    "key": _text_to_bytes,
    "keyJson": _json_to_bytes,
    "keyBase64": _base64_to_bytes,
}
_VALUES: Final[dict[str, Callable[[Any], bytes]]] = {
    "value": _json_to_bytes,
    "valueText": _text_to_bytes,
    "valueBase64": _base64_to_bytes,
}
_FIELDS: Final = frozenset((*_KEYS, *_VALUES, "headers", "partition", "timestamp"))
_HEADER_FIELDS: Final = frozenset(("key", "keyBase64", "value", "valueBase64"))


# to JSON


def json_of(
    record: Record, key_encoding: Encoding = Encoding.TEXT, value_encoding: Encoding = Encoding.JSON
) -> dict[str, Any]:
    """Offset, timestamp, key, value and headers, in this order."""
    shown: dict[str, Any] = {"offset": record.offset, "timestamp": record.timestamp}
    key, value = record.key, record.value
    if key is None:
        shown["key"] = None
    else:
        name, content = _shown(key, key_encoding)
        shown[_KEY_NAMES[name]] = content
    if value is None:
        shown["value"] = None
    else:
        name, content = _shown(value, value_encoding)
        shown[_VALUE_NAMES[name]] = content
    shown["headers"] = [_json_of_header(*header) for header in record.headers] if record.headers else []
    return shown


def _json_of_header(key: str, value: bytes | None) -> dict[str, Any]:
    shown: dict[str, Any] = {}
    name, content = _shown(key.encode("utf-8", "surrogateescape"), Encoding.TEXT)
    shown["key" if name is Encoding.TEXT else "keyBase64"] = content
    if value is None:
        shown["value"] = None
    else:
        name, content = _shown(value, Encoding.TEXT)
        shown["value" if name is Encoding.TEXT else "valueBase64"] = content
    return shown


def _shown(data: bytes, encoding: Encoding) -> tuple[Encoding, Any]:
    """The content in this encoding, or in the next one that it has."""
    if encoding is not Encoding.BASE64:
        try:
            text = data.decode()
        except UnicodeDecodeError:
            pass
        else:
            if encoding is Encoding.JSON:
                document = parsed(text)
                if document is not None:
                    return Encoding.JSON, document
            return Encoding.TEXT, text
    return Encoding.BASE64, b64encode(data).decode()


def parsed(text: str) -> Any:
    """The document, if it is JSON that can be written again; None: it is not, or it is null."""
    try:
        document = _parse(text)
        if (text.count("[") + text.count("{") > _DEEPEST and is_deep(document, _DEEPEST)) or (
            "\\u" in text and not _is_unicode(document)
        ):
            return None
    except (ValueError, RecursionError):
        return None
    return document


_parse: Final = json.JSONDecoder(parse_float=finite, parse_constant=no_constant).decode


def _is_unicode(document: Any) -> bool:
    """Whether there is no half of a surrogate pair in its texts."""
    try:
        compact(document).encode()
    except UnicodeEncodeError:
        return False
    return True


_KEY_NAMES: Final = {Encoding.JSON: "keyJson", Encoding.TEXT: "key", Encoding.BASE64: "keyBase64"}
_VALUE_NAMES: Final = {Encoding.JSON: "value", Encoding.TEXT: "valueText", Encoding.BASE64: "valueBase64"}
