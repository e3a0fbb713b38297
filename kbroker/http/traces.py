"""Traces: the newest, those that have a span which is looked for, and one of them whole (docs/traces.md)."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from kbroker.http.answers import json_answer
from kbroker.http.endpoint import INTEGER, OBJECT, STRING, Answer, Endpoint, Parameter, Schema, json_answer_of
from kbroker.http.moments import timestamp_of
from kbroker.http.paging import LIMIT, limit_of
from kbroker.http.problems import Problem
from kbroker.http.turns import in_turns
from kbroker.observability.traces.search import MOST_SPANS, TraceSummary, Wanted, find_trace, search
from kbroker.observability.traces.spans import ERROR, OK, STATUSES, event_of
from kbroker.storage.trace_events import EVENTS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kbroker.http.answers import Response
    from kbroker.http.request import HttpRequest


async def newest(request: HttpRequest) -> Response:
    return await _found(request, Wanted())


async def matching(request: HttpRequest) -> Response:
    key = request.query("key", str)
    wanted = Wanted(
        topic=request.query("topic", str),
        partition=_number(request, "partition"),
        offset=_number(request, "offset"),
        key=None if key is None else key.encode(errors="replace"),
        from_ns=_moment(request, "from", 0),
        to_ns=_moment(request, "to", 999_999),
        status=_one_of(request, "status", STATUSES),
        event=_one_of(request, "event", EVENTS),
    )
    return await _found(request, wanted)


async def one(request: HttpRequest) -> Response:
    text = request.path["trace"].lower()
    if not re.fullmatch("[0-9a-f]{32}", text):
        raise Problem(400, "The id of a trace has 32 hexadecimal digits.")
    spans = await in_turns(request, find_trace(request.resources, bytes.fromhex(text)))
    if not spans:
        raise Problem(404, f"There is no trace {text}, or newer ones have taken its place.")
    return json_answer({"traceId": text, "spans": [span.document() for span in spans]})


async def _found(request: HttpRequest, wanted: Wanted) -> Response:
    summaries: Sequence[TraceSummary] = await in_turns(
        request, search(request.resources, wanted, limit_of(request))
    )
    traces = request.broker.known_traces()
    return json_answer(
        {
            "traces": [_shown(each) for each in summaries],
            "dropped": 0 if traces is None else traces.dropped,
        }
    )


def _shown(trace: TraceSummary) -> dict[str, Any]:
    return {
        "traceId": trace.trace_id.hex(),
        "timestamp": trace.begin_ns // 1_000_000,
        "durationMs": (trace.end_ns - trace.begin_ns) / 1_000_000,
        "spans": trace.spans,
        "topics": list(trace.topics),
        "events": [event_of(each) for each in trace.events],
        "status": ERROR if trace.failed else OK,
    }


def _number(request: HttpRequest, name: str) -> int | None:
    number = request.query(name, int)
    if number is not None and number < 0:
        raise Problem(400, f"{name} must be a number from 0 on, not {number}.")
    return number


def _moment(request: HttpRequest, name: str, more_ns: int) -> int | None:
    text = request.query(name, str)
    return None if text is None else timestamp_of(text, name) * 1_000_000 + more_ns


def _one_of(request: HttpRequest, name: str, known: Sequence[str]) -> str | None:
    text = request.query(name, str)
    if text is not None and text not in known:
        raise Problem(400, f"{name} must be one of {', '.join(known)}, not {text[:50]!r}.")
    return text


_SUMMARY_MEMBERS: dict[str, Schema] = {
    "traceId": STRING,
    "timestamp": {"type": "integer", "description": "When its first span began, in ms."},
    "durationMs": {"type": "number", "description": "From then to the end of its last one."},
    "spans": INTEGER,
    "topics": {"type": "array", "items": STRING},
    "events": {"type": "array", "items": STRING},
    "status": {"type": "string", "enum": list(STATUSES)},
}
_SUMMARY: Schema = {"type": "object", "required": [*_SUMMARY_MEMBERS], "properties": _SUMMARY_MEMBERS}
_SUMMARIES = json_answer_of(
    "The traces, the newest first.",
    {
        "type": "object",
        "required": ["traces", "dropped"],
        "properties": {
            "traces": {"type": "array", "items": _SUMMARY},
            "dropped": {
                "type": "integer",
                "description": "Records and events that left no span since the start, for want of time.",
            },
        },
    },
)
_NANOSECONDS: Schema = {"type": "string", "description": "Nanoseconds since 1970; too large for numbers."}
_SPAN_MEMBERS: dict[str, Schema] = {
    "traceId": STRING,
    "spanId": STRING,
    "parentSpanId": {"type": ["string", "null"]},
    "event": {"type": "string", "description": f"Such as {', '.join(EVENTS)}."},
    "status": {"type": "string", "enum": list(STATUSES)},
    "startTimeUnixNano": _NANOSECONDS,
    "endTimeUnixNano": _NANOSECONDS,
    "topic": STRING,
    "partition": INTEGER,
    "offset": INTEGER,
    "attributes": OBJECT,
}
_SPAN: Schema = {
    "type": "object",
    "required": [*_SPAN_MEMBERS],
    "properties": {
        **_SPAN_MEMBERS,
        "key": {"type": ["string", "null"], "description": "Of a long one, its beginning."},
        "keyBase64": {"type": "string", "description": "Instead of key, where it is no text."},
    },
}
_NUMBER: Schema = {"type": "integer", "minimum": 0}
_TAG = "traces"

ENDPOINTS = (
    Endpoint(
        "GET",
        "/traces",
        newest,
        "List the newest traces.",
        parameters=(LIMIT,),
        answers={200: _SUMMARIES},
        tag=_TAG,
    ),
    Endpoint(
        "GET",
        "/traces/search",
        matching,
        "Find traces with a span that answers to all that is asked.",
        parameters=(
            Parameter("topic", "The span is of a record of this topic."),
            Parameter("partition", "Its partition.", _NUMBER),
            Parameter("offset", "Its offset.", _NUMBER),
            Parameter("key", "Its key, as text."),
            Parameter("from", "It ended then or later: milliseconds since 1970, or ISO 8601."),
            Parameter("to", "It began then or earlier."),
            Parameter("status", "How it ended.", {"type": "string", "enum": list(STATUSES)}),
            Parameter("event", "What happened.", {"type": "string", "enum": list(EVENTS)}),
            LIMIT,
        ),
        answers={200: _SUMMARIES},
        tag=_TAG,
    ),
    Endpoint(
        "GET",
        "/traces/{trace}",
        one,
        "Show the spans of a trace, by the time at which they began.",
        answers={
            200: json_answer_of(
                f"The trace; of more than {MOST_SPANS} spans the newest.",
                {
                    "type": "object",
                    "required": ["traceId", "spans"],
                    "properties": {"traceId": STRING, "spans": {"type": "array", "items": _SPAN}},
                },
            ),
            404: Answer("There is no such trace, or newer ones have taken its place."),
        },
        tag=_TAG,
    ),
)
