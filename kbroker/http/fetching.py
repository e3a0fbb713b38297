"""Fetching: the records of a partition from where the client says, with a long poll if there are none yet.

Read your writes: with the offset of what it has written (minOffset, X-Read-Min-Offset) a client is answered
once that can be read, or told by 504 how far the partition is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kbroker.http.endpoint import FLAG, INTEGER, JSON, OBJECT, STRING, Answer, Endpoint, Parameter, Schema
from kbroker.http.fetched import BYTES, LENGTH_PREFIXED, NDJSON, Wanted, answer
from kbroker.http.moments import timestamp_of
from kbroker.http.problems import Problem, problem_of
from kbroker.http.record_parameters import (
    ISOLATION_PARAMETER,
    KEY_PARAMETER,
    VALUE_PARAMETER,
    encodings,
    limit,
    limit_parameter,
    reads_committed,
)
from kbroker.http.waiting import unless_gone
from kbroker.network.awaiting import settled
from kbroker.operations.offsets import EARLIEST, LATEST, visible_end
from kbroker.operations.partitions import beginning_at, topic_with_partition
from kbroker.operations.reading import ReadFrom
from kbroker.operations.records import MOST_RECORDS, read_records
from kbroker.protocol.errors import ApiError, ErrorCode
from kbroker.quotas.entities import CONSUMER_BYTE_RATE
from kbroker.security.acls import AclOperation

if TYPE_CHECKING:
    from kbroker.http.answers import Response
    from kbroker.http.request import HttpRequest

MAX_WAIT_MS = 60_000
MAX_BYTES = 16 * 1024 * 1024
_USUAL_BYTES = 1024 * 1024
_USUAL_RECORDS = 1000
_NAMED = {"earliest": EARLIEST, "latest": LATEST}


async def fetch(request: HttpRequest) -> Response:
    name, partition = request.path["topic"], request.path_int("partition")
    resources, committed = request.resources, reads_committed(request)
    raw = request.query("raw", bool, False)
    media_type = BYTES if raw else request.accepts(JSON, NDJSON, BYTES, LENGTH_PREFIXED)
    if media_type is None:
        raise Problem(406, f"Records are written as {JSON}, {NDJSON}, {BYTES} or {LENGTH_PREFIXED}.")
    how = encodings(request)
    max_wait_ms = limit(request, "maxWaitMs", 0, 0, MAX_WAIT_MS)
    max_bytes = limit(request, "maxBytes", _USUAL_BYTES, 1, MAX_BYTES)
    max_records = limit(request, "maxRecords", _USUAL_RECORDS, 1, MOST_RECORDS)
    if media_type == BYTES:
        max_records = 1
    await request.body()
    topic_with_partition(resources, name, partition, AclOperation.READ)
    deadline_ms = request.now_ms + max_wait_ms
    await _wait_for(request, _min_offset(request), deadline_ms, committed=committed)
    offset = await _offset(request, committed=committed)
    wanted = Wanted(name, partition, max_bytes, max_records, committed, media_type, how)
    steps = answer(request, wanted, offset, deadline_ms)
    try:
        return await unless_gone(request, request.broker.long_requests.run(steps))
    except ApiError as error:
        if error.code is ErrorCode.OFFSET_OUT_OF_RANGE:
            raise _out_of_range(request, offset, committed=committed) from None
        raise


async def _offset(request: HttpRequest, *, committed: bool) -> int:
    """Where to begin: a number, a name, or a time."""
    text, moment = request.query("offset", str), request.query("timestamp", str)
    if text is not None and moment is not None:
        raise Problem(400, "A fetch begins at an offset or at a timestamp: name one of them.")
    if text is not None and text not in _NAMED:
        if not text.isascii() or not text.isdecimal() or len(text) > 18:
            raise Problem(400, f"offset must be a number from 0 on, earliest or latest, not {text[:50]!r}.")
        return int(text)
    wanted = _NAMED[text or "earliest"] if moment is None else timestamp_of(moment, "timestamp")
    name, partition = request.path["topic"], request.path_int("partition")
    return await settled(beginning_at(request.resources, name, partition, wanted, committed=committed))


def _min_offset(request: HttpRequest) -> int | None:
    text = request.query("minOffset", str)
    if text is None:
        text = request.headers.get("x-read-min-offset")
    if text is None:
        return None
    if not text.isascii() or not text.isdecimal() or len(text) > 18:
        raise Problem(400, f"minOffset must be an offset, not {text[:50]!r}.")
    return int(text)


async def _wait_for(
    request: HttpRequest, min_offset: int | None, deadline_ms: int, *, committed: bool
) -> None:
    """Until the record at this offset can be read. Problem: 504."""
    if min_offset is None:
        return
    name, partition = request.path["topic"], request.path_int("partition")
    while True:
        resources = request.resources
        log = resources.log_of(topic_with_partition(resources, name, partition, AclOperation.READ), partition)
        await settled(log.refresh())
        end = visible_end(log, committed=committed)
        if end > min_offset:
            return
        left_ms = deadline_ms - request.now_ms
        if left_ms <= 0:
            raise Problem(
                504,
                f"The next offset of the partition is {end}, and {min_offset} is not there yet: "
                "ask again, or wait longer (maxWaitMs).",
                nextOffset=end,
            )
        await unless_gone(
            request,
            read_records(
                resources,
                ReadFrom(name, partition, max(end, log.log_start_offset), 1),
                max_records=1,
                max_wait_ms=left_ms,
                committed=committed,
            ),
        )


def _out_of_range(request: HttpRequest, offset: int, *, committed: bool) -> Problem:
    name, partition = request.path["topic"], request.path_int("partition")
    resources = request.resources
    log = resources.log_of(topic_with_partition(resources, name, partition, AclOperation.READ), partition)
    start, end = log.log_start_offset, visible_end(log, committed=committed)
    problem = problem_of(
        ApiError(
            ErrorCode.OFFSET_OUT_OF_RANGE,
            f"Offset {offset} is not there: the partition begins at {start}, and its next offset is {end}.",
        )
    )
    problem.more |= {"logStartOffset": start, "nextOffset": end}
    return problem


# what the document says

_ENTRY: Schema = {
    "title": "Record",
    "description": "A key and a value in the encoding that was asked for, or the next one that they have.",
    "type": "object",
    "required": ["offset", "timestamp", "headers"],
    "properties": {
        "offset": INTEGER,
        "timestamp": INTEGER,
        "key": {"type": ["string", "null"]},
        "keyJson": {},
        "keyBase64": STRING,
        "value": {},
        "valueText": STRING,
        "valueBase64": STRING,
        "headers": {"type": "array", "items": OBJECT},
    },
}
_FETCHED_MEMBERS: dict[str, Any] = {
    "topic": STRING,
    "partition": INTEGER,
    "nextOffset": {"type": "integer", "description": "Where to go on."},
    "highWatermark": INTEGER,
    "lastStableOffset": INTEGER,
    "logStartOffset": INTEGER,
    "records": {"type": "array", "items": _ENTRY},
}
_LINES: Schema = {"description": "Records as JSON, one a line."}
_BYTES: Schema = {"description": "Values as they are."}
_FETCHED: Schema = {"type": "object", "required": [*_FETCHED_MEMBERS], "properties": _FETCHED_MEMBERS}

ENDPOINTS = (
    Endpoint(
        "GET",
        "/topics/{topic}/partitions/{partition}/fetch",
        fetch,
        "Fetch records from an offset or a time on.",
        (
            Parameter("offset", "A number, earliest (if not given) or latest."),
            Parameter("timestamp", "Instead of an offset: milliseconds since 1970, or ISO 8601."),
            limit_parameter(
                "maxBytes",
                "Of keys, values and headers; one record comes whatever its size.",
                _USUAL_BYTES,
                1,
                MAX_BYTES,
            ),
            limit_parameter("maxRecords", "How many at most.", _USUAL_RECORDS, 1, MOST_RECORDS),
            limit_parameter("maxWaitMs", "How long to wait for a first record.", 0, 0, MAX_WAIT_MS),
            ISOLATION_PARAMETER,
            Parameter("raw", "Answer with the value of the first record, as it is.", FLAG),
            KEY_PARAMETER,
            VALUE_PARAMETER,
            Parameter(
                "minOffset",
                "Wait until this offset can be read: read your writes.",
                {"type": "integer", "minimum": 0, "maximum": 10**18 - 1},
            ),
            Parameter(
                "X-Read-Min-Offset",
                "The same.",
                {"type": "integer", "minimum": 0, "maximum": 10**18 - 1},
                "header",
            ),
        ),
        answers={
            200: Answer("Records.", {JSON: _FETCHED, NDJSON: _LINES, BYTES: _BYTES, LENGTH_PREFIXED: _BYTES}),
            204: Answer("With raw: there is no record, or it has no value (X-Tombstone)."),
            416: Answer("The offset is not in the partition: `logStartOffset` and `nextOffset` say what is."),
            504: Answer("minOffset cannot be read yet: `nextOffset` says how far the partition is."),
        },
        at_once=True,
        tag="fetching",
        quota=CONSUMER_BYTE_RATE,
    ),
)
