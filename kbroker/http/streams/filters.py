"""Which records of a stream are wanted: by key, by headers, by what their values say.

A record must fulfil all that is asked for; of several keys it has one. A value that is no JSON document, or a
very long one, fulfils no condition.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from kbroker.http.endpoint import Parameter, Schema
from kbroker.http.problems import Problem
from kbroker.http.streams.json_paths import LONGEST, BadPath, JsonCondition, parsed

if TYPE_CHECKING:
    from kbroker.http.request import HttpRequest
    from kbroker.protocol.records import Record

LONGEST_VALUE: Final = 256 * 1024
"""Bytes that are looked into: parsing them takes some milliseconds."""
_MOST: Final = 16  # of each kind


class _HeaderWanted(NamedTuple):
    name: str
    value: bytes | None
    """None: any."""

    def is_in(self, record: Record) -> bool:
        return any(
            name == self.name and (self.value is None or value == self.value)
            for name, value in record.headers
        )


class Filters:
    def __init__(
        self, keys: frozenset[bytes], headers: Sequence[_HeaderWanted], conditions: Sequence[JsonCondition]
    ) -> None:
        self._keys = keys
        self._headers = headers
        self._conditions = conditions

    def match(self, record: Record) -> bool:
        if self._keys and record.key not in self._keys:
            return False
        if not all(header.is_in(record) for header in self._headers):
            return False
        return not self._conditions or self._match_value(record.value)

    def _match_value(self, value: Any) -> bool:
        if value is None or len(value) > LONGEST_VALUE:
            return False
        try:
            document = _decode(bytes(value).decode())
        except (ValueError, RecursionError):
            return False
        return all(condition.holds(document) for condition in self._conditions)


def filters_of(request: HttpRequest) -> Callable[[Record], bool] | None:
    """None: all records are wanted. Raises Problem."""
    keys = frozenset(text.encode() for text in _given(request, "whereKey"))
    headers = [_header(text) for text in _given(request, "whereHeader")]
    conditions = [_condition(text) for text in _given(request, "where")]
    if not keys and not headers and not conditions:
        return None
    return Filters(keys, headers, conditions).match


def _given(request: HttpRequest, name: str) -> list[str]:
    given = request.parameters.get(name, [])
    if len(given) > _MOST:
        raise Problem(400, f"{name} may be given {_MOST} times at most.")
    return given


def _header(text: str) -> _HeaderWanted:
    name, equals, value = text.partition("=")
    if not name:
        raise Problem(400, "whereHeader is the name of a header, or name=value.")
    return _HeaderWanted(name, value.encode() if equals else None)


def _condition(text: str) -> JsonCondition:
    try:
        return parsed(text)
    except BadPath as bad:
        raise Problem(
            400,
            f"where must be a condition such as $.order.amount >= 100 or $.items[0]; {bad} of {text[:99]!r}.",
        ) from None


def _no_constant(text: str) -> Any:
    raise ValueError(f"JSON has no {text}")


_decode: Final = json.JSONDecoder(parse_constant=_no_constant).decode


def _several(schema: Schema) -> Schema:
    return {"type": "array", "items": schema, "maxItems": _MOST}


PARAMETERS = (
    Parameter(
        "whereKey",
        "Only records with this key, a text; repeated: with one of these.",
        _several({"type": "string"}),
    ),
    Parameter(
        "whereHeader",
        "Only records with this header: name, or name=value; repeated: with all of these.",
        _several({"type": "string", "minLength": 1}),
    ),
    Parameter(
        "where",
        "Only records whose values fulfil this: a JSON path (RFC 9535) of members and indexes, alone or "
        "compared with a literal, such as $.order.amount >= 100; repeated: all of these.",
        _several({"type": "string", "maxLength": LONGEST}),
    ),
)
