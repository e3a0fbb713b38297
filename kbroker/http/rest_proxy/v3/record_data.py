"""Records as version 3 has them: key and value with type and data, headers in base64, an ISO 8601 timestamp.

Data of a type that needs a schema (AVRO, JSONSCHEMA, PROTOBUF, or no type at all, which means a schema that
is registered) is refused with 501: there is no Schema Registry yet.
"""

from __future__ import annotations

import binascii
from base64 import b64decode
from datetime import UTC, datetime
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from kbroker.http.compact_json import compact_bytes, compact_in_steps
from kbroker.http.json_documents import LongDict, is_long
from kbroker.http.members import Members
from kbroker.http.rest_proxy.errors import PARTITION_NOT_FOUND, RestError
from kbroker.operations.publishing import NewRecord, Published
from kbroker.protocol.records.codec import NO_TIMESTAMP, Record

if TYPE_CHECKING:
    from kbroker.requests.long_requests import Steps

_BINARY, _JSON, _STRING = "BINARY", "JSON", "STRING"
_WITH_SCHEMA: Final = ("AVRO", "JSONSCHEMA", "PROTOBUF")


class ParsedRecord(NamedTuple):
    new: NewRecord
    key_type: str | None
    value_type: str | None


def parsed_record(document: Any) -> ParsedRecord:
    """Raises RestError or Problem."""
    members = Members(document, "a record")
    partition = members.optional_integer("partition_id")
    if partition is not None and partition < 0:
        raise RestError(PARTITION_NOT_FOUND, f"There is no partition {partition}.")
    key_type, key = _data(members, "key")
    value_type, value = _data(members, "value")
    headers = tuple([_header(each) for each in members.items("headers")])
    record = Record(_timestamp(members), key, value, headers)
    return ParsedRecord(NewRecord(record, partition), key_type, value_type)


def long_parsed_record(document: LongDict) -> Steps[ParsedRecord]:
    """The same of one that takes long: JSON in it that does is left out first, and then put in."""
    short, long = dict(document), {}
    for name in ("key", "value"):
        data = document.get(name)
        if isinstance(data, dict) and data.get("type") == _JSON and is_long(data.get("data")):
            short[name], long[name] = {**data, "data": 0}, data["data"]
    found = parsed_record(short)
    record = found.new.record
    for name, content in long.items():
        try:
            data = yield from compact_in_steps(content)
        except ValueError:
            raise RestError(400, "JSON has no NaN and no Infinity.") from None
        record = record._replace(key=data) if name == "key" else record._replace(value=data)
    return found._replace(new=NewRecord(record, found.new.partition))


def report(cluster_id: str, topic: str, parsed: ParsedRecord, published: Published) -> dict[str, Any]:
    """What became of a record that was published."""
    record = parsed.new.record
    document: dict[str, Any] = {
        "cluster_id": cluster_id,
        "topic_name": topic,
        "partition_id": published.partition,
        "offset": published.offset,
        "timestamp": _moment(published.timestamp),
    }
    for name, type_, data in (
        ("key", parsed.key_type, record.key),
        ("value", parsed.value_type, record.value),
    ):
        if type_ is not None:
            document[name] = {"type": type_, "size": 0 if data is None else len(data)}
    return document


def _data(members: Members, name: str) -> tuple[str | None, bytes | None]:
    if members.get(name) is None:
        return None, None
    data = Members(members.get(name), name)
    type_, content = data.optional_text("type"), data.get("data")
    if type_ is None or type_ in _WITH_SCHEMA:
        said = "no type, which means a schema" if type_ is None else f"the type {type_}, which needs a schema"
        raise RestError(
            501, f"{name} has {said}; without a Schema Registry it must be BINARY, JSON or STRING."
        )
    if type_ not in (_BINARY, _JSON, _STRING):
        raise RestError(400, f"The type of {name} must be BINARY, JSON or STRING, not {type_[:50]!r}.")
    if content is None:
        return type_, None
    if type_ == _JSON:
        return type_, _json(content)
    if not isinstance(content, str):
        raise RestError(400, f"The data of {name} must be a string, as its type is {type_}.")
    return type_, _base64(content, f"the data of {name}") if type_ == _BINARY else _utf8(content, name)


def _json(content: Any) -> bytes:
    try:
        return compact_bytes(content)
    except ValueError:
        raise RestError(400, "JSON has no NaN and no Infinity.") from None


def _header(value: Any) -> tuple[str, bytes | None]:
    header = Members(value, "a header")
    name, text = header.text("name"), header.optional_text("value")
    _utf8(name, "the name of a header")
    return name, None if text is None else _base64(text, f"the header {name[:50]!r}")


def _base64(text: str, what: str) -> bytes:
    try:
        return b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise RestError(400, f"Bad request: {what} is no base64.") from None


def _utf8(text: str, what: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError:
        raise RestError(400, f"{what}: the text has half of a surrogate pair.") from None


def _timestamp(members: Members) -> int:
    text = members.optional_text("timestamp")
    if text is None:
        return NO_TIMESTAMP
    try:
        moment = datetime.fromisoformat(text)
        milliseconds = round(moment.timestamp() * 1000) if moment.tzinfo is not None else -1
    except (ValueError, OverflowError):
        milliseconds = -1
    if milliseconds < 0:
        raise RestError(400, f"timestamp must be a time such as 2026-01-31T12:00:00Z, not {text[:50]!r}.")
    return milliseconds


@lru_cache(16)  # records that were published together have the same
def _moment(timestamp: int) -> str | None:
    try:
        moment = datetime.fromtimestamp(timestamp / 1000, UTC)
    except (ValueError, OverflowError, OSError):
        return None  # beyond the year 9999
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
