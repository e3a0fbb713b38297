"""Records with embedded data: published, and as consumers get them.

Of a request that is taken each record has its own outcome, under status 200.
"""

from __future__ import annotations

from base64 import b64encode
from binascii import Error as Base64Error
from binascii import a2b_base64
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from kbroker.http.answers import Response, encoded
from kbroker.http.compact_json import compact_in_steps
from kbroker.http.endpoint import INTEGER, STRING, Endpoint, Schema
from kbroker.http.json_records import parsed
from kbroker.http.members import Members
from kbroker.http.rest_proxy.errors import (
    PARTITION_NOT_FOUND,
    TOPIC_NOT_FOUND,
    RestError,
    rest_error,
)
from kbroker.http.rest_proxy.v2.endpoints import WITH_DATA, endpoint
from kbroker.http.rest_proxy.v2.media import ANY, Format, answer, given_format
from kbroker.http.turns import in_turns
from kbroker.operations.publishing import NewRecord, Published, publish
from kbroker.protocol.errors import ApiError, ErrorCode
from kbroker.protocol.records.codec import NO_TIMESTAMP, Record
from kbroker.quotas.entities import PRODUCER_BYTE_RATE
from kbroker.security.acls import AclOperation

if TYPE_CHECKING:
    from kbroker.http.request import HttpRequest
    from kbroker.operations.consumers.consumer import ConsumedRecord
    from kbroker.operations.publishing import Outcome
    from kbroker.requests.long_requests import Steps

_UNPROCESSABLE = 422
_UNDECODABLE = 50002
_PER_PAUSE = 16  # records
_SCHEMAS = ("key_schema", "key_schema_id", "value_schema", "value_schema_id")


async def produce_to_topic(request: HttpRequest) -> Response:
    return await _produce(request, None)


async def produce_to_partition(request: HttpRequest) -> Response:
    return await _produce(request, request.path_int("partition"))


async def _produce(request: HttpRequest, partition: int | None) -> Response:
    format_ = given_format(request)
    if not await request.body():
        raise RestError(_UNPROCESSABLE, "The body is empty: send records.")
    members = Members(await request.json())
    for name in _SCHEMAS:  # they are not needed, but what is no schema is a mistake
        schema = members.get(name)
        if schema is not None and (isinstance(schema, bool) or not isinstance(schema, str | int)):
            raise RestError(_UNPROCESSABLE, f"{name} must be a string or a number.")
    given = members.items("records")
    if not given:
        raise RestError(_UNPROCESSABLE, "The body has no records: send one at least.")
    topic = request.path["topic"]
    try:
        outcomes = await in_turns(request, _published(request, topic, given, format_, partition))
    except ApiError as error:
        if error.code in (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.INVALID_TOPIC_EXCEPTION):
            raise RestError(TOPIC_NOT_FOUND, "Topic not found.") from None
        raise
    if partition is not None and not any(isinstance(each, Published) for each in outcomes):
        topic_found = request.resources.find_topic(topic, AclOperation.WRITE)
        if topic_found is not None and partition >= topic_found.partitions:
            raise RestError(PARTITION_NOT_FOUND, "Partition not found.")
    return answer(
        request,
        {"offsets": [_shown(each) for each in outcomes], "key_schema_id": None, "value_schema_id": None},
    )


def _published(
    request: HttpRequest, topic: str, given: Sequence[Any], format_: Format, partition: int | None
) -> Steps[list[Outcome]]:
    records: list[NewRecord] = []
    for index, each in enumerate(given):
        members = Members(each, f"records[{index}]")
        chosen = members.optional_integer("partition")
        key = yield from _bytes(members.get("key"), format_, index)
        value = yield from _bytes(members.get("value"), format_, index)
        records.append(NewRecord(Record(NO_TIMESTAMP, key, value), partition if chosen is None else chosen))
        if index % _PER_PAUSE == _PER_PAUSE - 1:
            yield None
    return (yield from publish(request.resources, topic, records, now_ms=request.now_ms))


def _bytes(given: Any, format_: Format, index: int) -> Steps[bytes | None]:
    if given is None:
        return None
    if format_ is Format.JSON:
        try:
            return (yield from compact_in_steps(given))
        except ValueError:
            raise RestError(400, f"records[{index}] has a number that JSON does not know.") from None
    if not isinstance(given, str):
        raise RestError(400, f"records[{index}]: in the format binary key and value are base64, in strings.")
    try:
        return a2b_base64(given, strict_mode=True)
    except (Base64Error, ValueError):
        raise RestError(400, f"records[{index}] has what is no base64.") from None


def _shown(outcome: Outcome) -> dict[str, Any]:
    if isinstance(outcome, Published):
        return {
            "partition": outcome.partition,
            "offset": outcome.offset,
            "error_code": None,
            "error": None,
        }
    failure = rest_error(outcome.error)
    return {"partition": None, "offset": None, "error_code": failure.code, "error": failure.message}


# as consumers get them


def shown_record(format_: Format, consumed: ConsumedRecord) -> bytes:
    """RestError: the record does not have the format."""
    topic, partition, record = consumed
    if format_ is Format.JSON:
        key, value = _document(record.key), _document(record.value)
        if key is _NO_JSON or value is _NO_JSON:
            raise RestError(
                _UNDECODABLE,
                f"The record at offset {record.offset} of partition {partition} of {topic} is no JSON: "
                "seek past it, or read it with a consumer of the format binary.",
            )
    else:
        key, value = _base64(record.key), _base64(record.value)
    return encoded(
        {"topic": topic, "key": key, "value": value, "partition": partition, "offset": record.offset}
    )


_NO_JSON = object()


def _document(data: bytes | None) -> Any:
    if data is None:
        return None
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return _NO_JSON
    document = parsed(text)
    return document if document is not None or text.strip() == "null" else _NO_JSON


def _base64(data: bytes | None) -> str | None:
    return None if data is None else b64encode(data).decode()


_RECORDS: Schema = {
    "type": "object",
    "required": ["records"],
    "properties": {
        "records": {
            "type": "array",
            "minItems": 1,
            "items": {
                "type": "object",
                "properties": {
                    "key": {"description": "base64 in the format binary, any JSON in the format json"},
                    "value": {"description": "The same."},
                    "partition": {"type": ["integer", "null"]},
                },
            },
        },
        **{name: {"type": ["string", "integer", "null"]} for name in _SCHEMAS},
    },
}
_PRODUCED: Schema = {
    "type": "object",
    "required": ["offsets", "key_schema_id", "value_schema_id"],
    "properties": {
        "offsets": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["partition", "offset", "error_code", "error"],
                "properties": {
                    "partition": {"type": ["integer", "null"]},
                    "offset": {"type": ["integer", "null"]},
                    "error_code": {"type": ["integer", "null"]},
                    "error": {"type": ["string", "null"]},
                },
            },
        },
        "key_schema_id": {"type": ["integer", "null"]},
        "value_schema_id": {"type": ["integer", "null"]},
    },
}
RECORDS: Schema = {
    "type": "array",
    "items": {
        "type": "object",
        "required": ["topic", "key", "value", "partition", "offset"],
        "properties": {"topic": STRING, "key": {}, "value": {}, "partition": INTEGER, "offset": INTEGER},
    },
}

ENDPOINTS: tuple[Endpoint, ...] = (
    endpoint(
        "POST",
        "/topics/{topic}",
        produce_to_topic,
        "Publish records to a topic.",
        body=_RECORDS,
        body_types=WITH_DATA,
        answers={200: _PRODUCED},
        at_once=True,
        quota=PRODUCER_BYTE_RATE,
    ),
    endpoint(
        "POST",
        "/topics/{topic}/partitions/{partition}",
        produce_to_partition,
        "Publish records to a partition.",
        body=_RECORDS,
        body_types=WITH_DATA,
        answers={200: _PRODUCED},
        media=ANY,
        at_once=True,
        quota=PRODUCER_BYTE_RATE,
    ),
)
