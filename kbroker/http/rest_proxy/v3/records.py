"""Records published: in a stream, one report for each, in order; or as a batch.

A stream's body is as many JSON objects as the client wants to send, for as long as it wants. Those that came
together are published together; their reports are written before more is read, so that a client that does not
take its reports is not read from either. A record that fails has a report with its error, and the stream goes
on; what is no JSON object ends it, after a report that says so. The status is 200 whatever became of records.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from typing import TYPE_CHECKING, Any

from kbroker.http.answers import encoded, json_answer, streamed
from kbroker.http.bodies import document_of
from kbroker.http.endpoint import JSON, OBJECT, STRING, Endpoint, Schema
from kbroker.http.json_documents import LongDict
from kbroker.http.members import Members
from kbroker.http.rest_proxy.errors import (
    INVALID_BATCH,
    INVALID_PAYLOAD,
    PARTITION_NOT_FOUND,
    TOPIC_NOT_FOUND,
    RestError,
    rest_error,
)
from kbroker.http.rest_proxy.v3.endpoints import endpoint
from kbroker.http.rest_proxy.v3.json_stream import JsonStream, Malformed, NotJson, TooLong, Unparsed
from kbroker.http.rest_proxy.v3.record_data import ParsedRecord, long_parsed_record, parsed_record, report
from kbroker.http.turns import in_turns
from kbroker.operations.publishing import Published, publish
from kbroker.protocol.errors import ApiError, ErrorCode
from kbroker.quotas.entities import PRODUCER_BYTE_RATE
from kbroker.requests.long_requests import Steps

if TYPE_CHECKING:
    from kbroker.http.answers import Response
    from kbroker.http.request import HttpRequest
    from kbroker.operations.publishing import Outcome

_MOST_TOGETHER = 500  # records published at once
_MOST_ENTRIES = 1000  # of a batch
_LONGEST_ID = 80
_SEPARATOR = b"\r\n"

Parsed = ParsedRecord | RestError
Result = dict[str, Any] | RestError
"""What became of a record: its report without an error code, or what went wrong."""


async def produce(request: HttpRequest) -> Response:
    parts = request.chunks()
    first = b""
    async for part in parts:
        first = part.lstrip()
        if first:
            break
    if not first:
        raise RestError(INVALID_PAYLOAD, "The body is empty: send records.")
    return streamed(_reports(request, first, parts), JSON)  # nobody else may read the request


async def produce_batch(request: HttpRequest) -> Response:
    body = await request.body()
    if not body.strip():
        raise RestError(INVALID_BATCH, "The body is empty: send entries.")
    entries = Members(await request.json()).required_items("entries")
    ids = _ids(entries)
    parsed = await in_turns(request, _parsed_each(entries))
    results = await _published(request, parsed)
    successes, failures = [], []
    for id_, result in zip(ids, results, strict=True):
        if isinstance(result, RestError):
            failures.append({"id": id_, **result.document()})
        else:
            successes.append({"id": id_, **result})
    return json_answer({"successes": successes, "failures": failures}, 207)


async def _reports(request: HttpRequest, first: bytes, parts: AsyncIterator[bytes]) -> AsyncGenerator[bytes]:
    stream = JsonStream(request.broker.settings["kbroker.http.max.request.bytes"])
    held = _Held(request)
    try:
        data: bytes | None = first
        while data is not None:
            objects = stream.feed(data)
            held.become(stream.held + len(data))
            held_bytes = 0
            for index, each in enumerate(objects):
                if isinstance(each, Unparsed):
                    objects[index], more = await _document_of(request, each)
                    held_bytes += more
            for start in range(0, len(objects), _MOST_TOGETHER):
                yield await _report_each(request, objects[start : start + _MOST_TOGETHER])
            request.hold(-held_bytes)
            held.become(stream.held)
            if objects:
                stream.feed(b"")  # raises for what is behind them, if that is no object
            data = await anext(parts, None)
        stream.end()
    except (NotJson, TooLong) as error:
        yield _line(RestError(400, f"{error}; nothing behind it is read.").document())
    finally:
        held.become(0)


async def _document_of(request: HttpRequest, unparsed: Unparsed) -> tuple[Any, int]:
    """And how many bytes the request holds for it."""
    try:
        return await document_of(request, unparsed.text.encode(errors="surrogateescape"))
    except (ValueError, RecursionError) as error:
        return Malformed(error), 0


async def _report_each(request: HttpRequest, objects: Sequence[Any]) -> bytes:
    parsed = await in_turns(request, _parsed_each(objects))
    return b"".join(
        [
            _line(result.document() if isinstance(result, RestError) else {"error_code": 200, **result})
            for result in await _published(request, parsed)
        ]
    )


async def _published(request: HttpRequest, parsed: Sequence[Parsed]) -> list[Result]:
    """Those that could be parsed are published, together."""
    topic, cluster_id = request.path["topic_name"], request.broker.cluster.cluster_id
    good = [each for each in parsed if isinstance(each, ParsedRecord)]
    outcomes: Sequence[Outcome] = []
    failure: RestError | None = None
    if good:
        steps = publish(request.resources, topic, [each.new for each in good], now_ms=request.now_ms)
        try:
            outcomes = await in_turns(request, steps)
        except Exception as error:
            failure = _failure(error, TOPIC_NOT_FOUND)
    rest = iter(outcomes)
    results: list[Result] = []
    for each in parsed:
        if isinstance(each, RestError):
            results.append(each)
        elif failure is not None:
            results.append(failure)
        else:
            outcome = next(rest)
            if isinstance(outcome, Published):
                results.append(report(cluster_id, topic, each, outcome))
            else:
                results.append(_failure(outcome.error, PARTITION_NOT_FOUND))
    return results


def _failure(error: Exception, not_found: int) -> RestError:
    """``not_found``: the code of what is missing."""
    if isinstance(error, ApiError) and error.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
        return RestError(not_found, error.message or error.code.message)
    return rest_error(error)


def _parsed_each(entries: Sequence[Any]) -> Steps[list[Parsed]]:
    parsed: list[Parsed] = []
    for each in entries:
        if type(each) is LongDict:
            parsed.append((yield from _long_parsed(each)))
        else:
            parsed.append(_parsed(each))
        yield None
    return parsed


def _long_parsed(document: LongDict) -> Steps[Parsed]:
    try:
        return (yield from long_parsed_record(document))
    except Exception as error:
        return rest_error(error)


def _parsed(document: Any) -> Parsed:
    if isinstance(document, Malformed):
        return RestError(400, f"The record is not JSON: {document.problem}.")
    try:
        return parsed_record(document)
    except Exception as error:
        return rest_error(error)


def _ids(entries: Sequence[Any]) -> list[str]:
    if not entries:
        raise RestError(INVALID_BATCH, "The batch is empty.")
    if len(entries) > _MOST_ENTRIES:
        raise RestError(INVALID_BATCH, f"A batch may have {_MOST_ENTRIES} entries at most.")
    ids: dict[str, None] = {}
    for entry in entries:
        id_ = entry.get("id") if isinstance(entry, dict) else None
        if not isinstance(id_, str) or not 1 <= len(id_) <= _LONGEST_ID:
            raise RestError(INVALID_BATCH, f"Each entry needs an id of 1 to {_LONGEST_ID} characters.")
        if id_ in ids:
            raise RestError(INVALID_BATCH, f"The id {id_!r} is there twice.")
        ids[id_] = None
    return list(ids)


def _line(document: dict[str, Any]) -> bytes:
    return encoded(document) + _SEPARATOR


class _Held:
    """What a stream holds of the budget."""

    __slots__ = ("_request", "_size")

    def __init__(self, request: HttpRequest) -> None:
        self._request = request
        self._size = 0

    def become(self, size: int) -> None:
        more, self._size = size - self._size, size
        self._request.connection.held_bytes += more
        if more > 0:
            self._request.broker.budget.take(more)
        elif more < 0:
            self._request.broker.budget.give_back(-more)


_DATA: Schema = {
    "type": ["object", "null"],
    "properties": {
        "type": {"type": "string", "enum": ["BINARY", "JSON", "STRING"]},
        "data": {"description": "Base64, any JSON, or a string, as the type says; null: none."},
    },
}
_RECORD: dict[str, Schema] = {
    "partition_id": {"type": ["integer", "null"]},
    "headers": {
        "type": "array",
        "items": {
            "type": "object",
            "required": ["name"],
            "properties": {"name": STRING, "value": {"type": ["string", "null"], "description": "Base64."}},
        },
    },
    "key": _DATA,
    "value": _DATA,
    "timestamp": {"type": ["string", "null"], "format": "date-time"},
}
_BATCH: Schema = {
    "type": "object",
    "required": ["entries"],
    "properties": {
        "entries": {
            "type": "array",
            "minItems": 1,
            "maxItems": _MOST_ENTRIES,
            "items": {
                "type": "object",
                "required": ["id"],
                "properties": {
                    "id": {"type": "string", "minLength": 1, "maxLength": _LONGEST_ID},
                    **_RECORD,
                },
            },
        }
    },
}

ENDPOINTS: tuple[Endpoint, ...] = (
    endpoint(
        "POST",
        "/topics/{topic_name}/records",
        produce,
        "Publish records, one JSON object after the other, in a body that may go on for ever.",
        body={"type": "object", "properties": _RECORD},
        answers={200: OBJECT},
        at_once=True,
        quota=PRODUCER_BYTE_RATE,
    ),
    endpoint(
        "POST",
        "/topics/{topic_name}/records:batch",
        produce_batch,
        "Publish several records.",
        body=_BATCH,
        answers={
            207: {
                "type": "object",
                "required": ["successes", "failures"],
                "properties": {
                    "successes": {"type": "array", "items": OBJECT},
                    "failures": {"type": "array", "items": OBJECT},
                },
            }
        },
        at_once=True,
        quota=PRODUCER_BYTE_RATE,
    ),
)
