"""Records as clients send them in JSON or as bytes: what of a request says what is to be published.

`json_records.py` knows one record; this knows lists of them, their topics, and the members around them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from kbroker.http.endpoint import STRING, Parameter, Schema
from kbroker.http.json_documents import LONG_TEXT, LongDict
from kbroker.http.json_records import BadRecord, long_bytes, long_record_of, record_of, value_of
from kbroker.http.members import Members
from kbroker.http.problems import Problem
from kbroker.http.turns import in_turns
from kbroker.operations.publishing import NewRecord
from kbroker.protocol.records.codec import NO_TIMESTAMP, Record
from kbroker.protocol.records.compression import CODEC_NAMES, NONE

if TYPE_CHECKING:
    from kbroker.http.request import HttpRequest
    from kbroker.requests.long_requests import Steps

MOST_NUMBER = (1 << 31) - 1
_PER_PAUSE = 16  # records
_MOST_RECORDS = 100_000
WITH_CODEC = frozenset(("codec",))
WITH_TOPIC = frozenset(("topic",))
WITH_BOTH = WITH_CODEC | WITH_TOPIC

Addressed = tuple[str, NewRecord]
"""A record and its topic."""


async def raw_record(request: HttpRequest, partition: int) -> NewRecord:
    """The body is the value."""
    key, timestamp = request.query("key", str), request.query("timestamp", int, request.now_ms)
    if timestamp < NO_TIMESTAMP:
        raise Problem(400, "timestamp must be milliseconds since 1970.")
    value = await request.body()
    record = Record(timestamp, None if key is None else key.encode(errors="surrogateescape"), value)
    return NewRecord(record, partition)


def records_of(document: Any) -> tuple[Any, bool, str | None]:
    """The records, whether it is one by itself, and the codec."""
    if isinstance(document, dict) and "records" not in document:
        codec = document.get("codec")
        if codec is not None and not isinstance(codec, str):
            raise Problem(400, "codec must be a string.")
        return document, True, codec
    if isinstance(document, list):
        return _checked(document), False, None
    given, codec = wrapped_records(document)
    return given, False, codec


def wrapped_records(document: Any) -> tuple[list[Any], str | None]:
    members = Members(document).only("records", "codec")
    return _checked(members.required_items("records")), members.optional_text("codec")


def _checked(given: list[Any]) -> list[Any]:
    if not given:
        raise Problem(400, "There are no records: send one at least.")
    if len(given) > _MOST_RECORDS:
        raise Problem(413, f"One request may have {_MOST_RECORDS} records at most: send it in parts.")
    return given


async def one_record(request: HttpRequest, given: Any, more_fields: frozenset[str]) -> NewRecord:
    try:
        if type(given) is LongDict:
            return await in_turns(request, long_record_of(given, request.now_ms, more_fields))
        return record_of(given, request.now_ms, more_fields)
    except BadRecord as error:
        raise Problem(400, f"{error}.") from None


def parsed_records(
    given: Sequence[Any], now_ms: int, more_fields: frozenset[str] = frozenset(), *, values: bool = False
) -> Steps[list[NewRecord]]:
    """``values``: a text is a value in base64."""
    records: list[NewRecord] = []
    try:
        for each in given:
            if values and isinstance(each, str):
                if len(each) > LONG_TEXT:
                    value = yield from long_bytes("valueBase64", each)
                    records.append(NewRecord(Record(now_ms, None, value), None))
                else:
                    records.append(value_of(each, now_ms))
            elif type(each) is LongDict:
                records.append((yield from long_record_of(each, now_ms, more_fields)))
            else:
                records.append(record_of(each, now_ms, more_fields))
            if not len(records) % _PER_PAUSE:
                yield None
    except BadRecord as error:
        raise Problem(400, f"{error.within(f'records[{len(records)}]')}.") from None
    return records


def addressed_records(given: Sequence[Any], now_ms: int) -> Steps[list[Addressed]]:
    records = yield from parsed_records(given, now_ms, WITH_TOPIC)
    addressed: list[Addressed] = []
    for index, (each, record) in enumerate(zip(given, records, strict=True)):
        addressed.append((topic_of(each, f"records[{index}]"), record))
        if not index % _PER_PAUSE:
            yield None
    return addressed


def topic_of(given: Any, where: str) -> str:
    topic = given.get("topic") if isinstance(given, dict) else None
    if not isinstance(topic, str):
        raise Problem(400, f"{where}.topic: the name of a topic is expected.")
    return topic


def codec_of(request: HttpRequest, given: str | None = None) -> int:
    """Of the query, or else of the body."""
    name = request.query("codec", str, given or "none")
    if name not in CODEC_NAMES:
        raise Problem(400, f"codec must be one of {', '.join(CODEC_NAMES)}, not {name[:50]!r}.")
    return CODEC_NAMES.index(name) if name else NONE


# what the document says

BASE64: Schema = {
    "type": ["string", "null"],
    "contentEncoding": "base64",
    "pattern": "^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$",
}
_TEXT: Schema = {"type": ["string", "null"]}
_HEADERS: Schema = {
    "description": "An object of names and texts, or a list of headers.",
    "oneOf": [
        {"type": "object", "additionalProperties": _TEXT},
        {
            "type": "array",
            "items": {
                "type": "object",
                "additionalProperties": False,
                "properties": {
                    "key": STRING,
                    "keyBase64": {**BASE64, "type": "string"},
                    "value": _TEXT,
                    "valueBase64": BASE64,
                },
                "minProperties": 2,
                "maxProperties": 2,
                "oneOf": [{"required": ["key"]}, {"required": ["keyBase64"]}],
            },
        },
    ],
}
_ONE_VALUE = [{"required": [name]} for name in ("value", "valueText", "valueBase64")]
_TWO_KEYS = [
    {"required": [*pair]} for pair in (("key", "keyJson"), ("key", "keyBase64"), ("keyJson", "keyBase64"))
]
_MEMBERS: dict[str, Schema] = {
    "key": {"type": ["string", "null"], "description": "Text; null: none."},
    "keyJson": {"description": "Any JSON."},
    "keyBase64": BASE64,
    "value": {"description": "Any JSON; null is a tombstone."},
    "valueText": _TEXT,
    "valueBase64": BASE64,
    "headers": _HEADERS,
    "timestamp": {
        "type": "integer",
        "minimum": 0,
        "maximum": (1 << 63) - 1,
        "description": "Milliseconds since 1970; of its arrival, if it is not given.",
    },
    "partition": {
        "type": ["integer", "null"],
        "minimum": 0,
        "maximum": MOST_NUMBER,
        "description": "If it is not given, the key decides, or whose turn it is.",
    },
}
_CODEC: Schema = {"type": ["string", "null"], "enum": [*CODEC_NAMES, None]}


def _record(title: str, **more: Schema) -> Schema:
    return {
        "title": title,
        "type": "object",
        "additionalProperties": False,
        "properties": {**more, **_MEMBERS},
        "oneOf": _ONE_VALUE,
        "not": {"anyOf": _TWO_KEYS},
        **({"required": ["topic"]} if "topic" in more else {}),
    }


def many(item: Schema) -> Schema:
    return {"type": "array", "minItems": 1, "items": item}


def wrapper(item: Schema) -> Schema:
    return {
        "type": "object",
        "required": ["records"],
        "additionalProperties": False,
        "properties": {"records": many(item), "codec": _CODEC},
    }


RECORD = _record("NewRecord")
ADDRESSED = _record("NewRecordOfTopic", topic=STRING)
ALONE = _record("OneNewRecord", codec=_CODEC)
ADDRESSED_ALONE = _record("OneNewRecordOfTopic", topic=STRING, codec=_CODEC)
CODEC_PARAMETER = Parameter(
    "codec", "How the records are compressed.", {"type": "string", "enum": [*CODEC_NAMES]}
)
RAW_PARAMETERS = (
    Parameter("key", "The record's key."),
    Parameter(
        "timestamp",
        "The record's time, in milliseconds since 1970.",
        {"type": "integer", "minimum": 0, "maximum": (1 << 63) - 1},
    ),
)
