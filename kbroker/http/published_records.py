"""What became of records that were to be published, as clients are told."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from kbroker.http.answers import bytes_answer, encoded, json_bytes
from kbroker.http.compact_json import compact
from kbroker.http.endpoint import INTEGER, JSON, STRING, Schema
from kbroker.http.problems import Problem, problem_of
from kbroker.http.turns import in_turns
from kbroker.operations.publishing import Outcome, Published, Refused
from kbroker.storage.errors import UnexpectedOffset

if TYPE_CHECKING:
    from kbroker.http.answers import Response
    from kbroker.http.request import HttpRequest
    from kbroker.requests.long_requests import Steps

_PER_PAUSE = 64  # records


def publish_problem(error: Exception) -> Problem:
    if isinstance(error, UnexpectedOffset):
        return Problem(
            409,
            f"The next offset is {error.log_end_offset}: somebody was faster. Nothing is written; "
            "read what is new, and try again with that offset.",
            nextOffset=error.log_end_offset,
        )
    return problem_of(error)


def answer_of_one(topic: str, outcome: Outcome) -> Response:
    if isinstance(outcome, Refused):
        raise publish_problem(outcome.error) from None
    return bytes_answer(json_bytes(_shown_with_topic(topic, outcome)), JSON)


async def answer_of_many(
    request: HttpRequest, told: Sequence[tuple[str, Outcome]], topic: str | None
) -> Response:
    """``topic``: the one of all of them."""
    refused = [each for _, each in told if isinstance(each, Refused)]
    if len(refused) == len(told):
        raise publish_problem(refused[0].error) from None
    body = await in_turns(request, _written(told, topic))
    request.hold(len(body))
    return bytes_answer(body, JSON, 207 if refused else 200)


def _written(told: Sequence[tuple[str, Outcome]], topic: str | None) -> Steps[bytes]:
    parts: list[bytes] = []
    for first in range(0, len(told), _PER_PAUSE):
        shown = [
            _shown_with_topic(name, outcome) if topic is None else f"{{{_shown(outcome)}}}"
            for name, outcome in told[first : first + _PER_PAUSE]
        ]
        parts.append(json_bytes(",".join(shown)))
        yield None
    head = b'{"records":[' if topic is None else b'{"topic":%b,"records":[' % encoded(topic)
    return head + b",".join(parts) + b"]}"


def _shown_with_topic(topic: str, outcome: Outcome) -> str:
    return f'{{"topic":{compact(topic)},{_shown(outcome)}}}'


def _shown(outcome: Outcome) -> str:
    """Members of a JSON object."""
    if isinstance(outcome, Published):
        partition, offset, timestamp = outcome
        known = "null" if offset < 0 else offset
        return f'"partition":{partition},"offset":{known},"timestamp":{timestamp}'
    problem = publish_problem(outcome.error).document()
    del problem["type"]
    where = {"partition": None if outcome.partition < 0 else outcome.partition}
    return compact({**where, "problem": problem})[1:-1]


# what the document says

_SHOWN: dict[str, Schema] = {
    "partition": INTEGER,
    "offset": {"type": ["integer", "null"], "description": "Null with acks=0, if it is not known yet."},
    "timestamp": INTEGER,
}
PUBLISHED: Schema = {
    "title": "Published",
    "type": "object",
    "required": ["topic", *_SHOWN],
    "properties": {"topic": STRING, **_SHOWN},
}
OUTCOMES: Schema = {
    "title": "PublishedRecords",
    "type": "object",
    "required": ["records"],
    "properties": {
        "topic": STRING,
        "records": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "topic": STRING,
                    **_SHOWN,
                    "partition": {"type": ["integer", "null"]},
                    "problem": {"type": "object"},
                },
            },
        },
    },
}
ONE_OR_MANY: Schema = {"oneOf": [PUBLISHED, OUTCOMES]}
