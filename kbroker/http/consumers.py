"""Consumers: members of groups for clients that have nothing but HTTP.

A consumer lives in the broker, under a name in its group, until it is deleted, its user is silent for its
idle time, or the broker stops. It heartbeats by itself; its user polls. Only who made it finds it.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from kbroker.http.answers import json_answer, no_content
from kbroker.http.endpoint import (
    INTEGER,
    JSON,
    OBJECT,
    STRING,
    Answer,
    Endpoint,
    Parameter,
    Schema,
    json_answer_of,
    json_body,
)
from kbroker.http.groups import (
    OFFSET,
    OFFSETS,
    PARTITION,
    PARTITIONS,
    REFUSED,
    given_offsets,
    given_partitions,
    given_topics,
    refused,
    shown_offsets,
    shown_partitions,
)
from kbroker.http.json_records import Encoding
from kbroker.http.members import Members
from kbroker.http.pieces import answer_of, held_bytes, written
from kbroker.http.problems import Problem
from kbroker.http.record_parameters import encodings, limit
from kbroker.http.shown_records import shown
from kbroker.http.turns import in_turns
from kbroker.http.waiting import unless_gone
from kbroker.network.awaiting import settled
from kbroker.operations.consumers.consumer import MAX_POLL_BYTES, MAX_POLL_RECORDS
from kbroker.operations.consumers.errors import NoSuchConsumer
from kbroker.operations.consumers.held import SeekTo
from kbroker.operations.consumers.settings import ConsumerSettings, OffsetReset
from kbroker.operations.group_offsets import TopicPartition
from kbroker.quotas.entities import CONSUMER_BYTE_RATE

if TYPE_CHECKING:
    from kbroker.http.answers import Response
    from kbroker.http.request import HttpRequest
    from kbroker.operations.consumers.consumer import ConsumedRecord, Consumer
    from kbroker.requests.long_requests import Steps

MAX_WAIT_MS = 60_000
_USUAL_RECORDS = 500
_USUAL_BYTES = 1024 * 1024
_IDLE_MS = (1_000, 3_600_000)
_REBALANCE_MS = (1_000, 3_600_000)
_PER_PAUSE = 16  # records written between two looks at the clock
_SETTINGS = (
    "autoOffsetReset",
    "autoCommit",
    "autoCommitIntervalMs",
    "isolation",
    "fetchMinBytes",
    "idleMs",
    "rebalanceTimeoutMs",
)


async def create(request: HttpRequest) -> Response:
    members = Members(await request.json() if await request.body() else {}).only(
        "name", "topics", "pattern", "partitions", *_SETTINGS
    )
    name = members.optional_text("name")
    if name is not None and not 1 <= len(name) <= 249:
        raise Problem(400, "The name of a consumer has 1 to 249 characters.")
    topics, pattern = given_topics(members.items("topics")), members.optional_text("pattern") or ""
    partitions = given_partitions(members.items("partitions"))
    if sum(map(bool, (topics, pattern, partitions))) > 1:
        raise Problem(400, "A consumer has topics, a pattern or partitions: name one of them.")
    consumer = request.broker.consumers.open(
        request.resources, request.path["group"], _settings(request, members), name
    )
    try:
        if topics or pattern:
            consumer.subscribe(request.resources, topics, pattern)
        elif partitions:
            consumer.assign(request.resources, partitions)
    except Exception:
        consumer.close()
        raise
    here = request.scope["raw_path"].decode("latin-1").rstrip("/")
    path = f"{here}/{quote(consumer.name, safe='')}"
    return json_answer({**_shown(consumer), "url": request.base_url + path}, 201, {"location": path})


def _settings(request: HttpRequest, members: Members) -> ConsumerSettings:
    reset = members.optional_text("autoOffsetReset") or "latest"
    isolation = members.optional_text("isolation") or "read_uncommitted"
    if reset not in {each.value for each in OffsetReset}:
        raise Problem(400, "autoOffsetReset must be earliest, latest or none.")
    if isolation not in ("read_uncommitted", "read_committed"):
        raise Problem(400, "isolation must be read_uncommitted or read_committed.")
    idle_ms = request.broker.settings["kbroker.http.consumer.idle.ms"]
    return ConsumerSettings(
        auto_offset_reset=OffsetReset(reset),
        auto_commit=members.boolean("autoCommit") if "autoCommit" in members else True,
        auto_commit_interval_ms=_number(members, "autoCommitIntervalMs", 5_000, 0, MAX_WAIT_MS),
        read_committed=isolation == "read_committed",
        fetch_min_bytes=_number(members, "fetchMinBytes", 1, 1, MAX_POLL_BYTES),
        idle_ms=_number(members, "idleMs", idle_ms, *_IDLE_MS),
        rebalance_timeout_ms=_number(members, "rebalanceTimeoutMs", 300_000, *_REBALANCE_MS),
        client_id=request.caller.client_id or "http",
        client_host=f"/{request.caller.peer_host}",
    )


def _number(members: Members, name: str, default: int, least: int, most: int) -> int:
    value = members.optional_integer(name)
    if value is None:
        return default
    if not least <= value <= most:
        raise Problem(400, f"{name} must be from {least} to {most}, not {value}.")
    return value


async def list_own(request: HttpRequest) -> Response:
    consumers = request.broker.consumers.of_group(request.resources, request.path["group"])
    return json_answer({"consumers": [_shown(consumer) for consumer in consumers]})


async def describe(request: HttpRequest) -> Response:
    return json_answer(_shown(_consumer(request)))


async def heartbeat(request: HttpRequest) -> Response:
    consumer = _consumer(request)
    consumer.touch()
    return json_answer(_shown(consumer))


async def delete(request: HttpRequest) -> Response:
    await settled(_consumer(request).close())
    return no_content()


async def subscribe(request: HttpRequest) -> Response:
    consumer = _consumer(request)
    members = Members(await request.json()).only("topics", "pattern")
    topics, pattern = given_topics(members.items("topics")), members.optional_text("pattern") or ""
    consumer.subscribe(request.resources, topics, pattern)
    return json_answer(_shown(consumer))


async def unsubscribe(request: HttpRequest) -> Response:
    await settled(_consumer(request).unsubscribe())
    return no_content()


async def assign(request: HttpRequest) -> Response:
    consumer = _consumer(request)
    members = Members(await request.json()).only("partitions")
    consumer.assign(request.resources, given_partitions(members.required_items("partitions")))
    return json_answer(_shown(consumer))


async def poll(request: HttpRequest) -> Response:
    consumer = _consumer(request)
    how = encodings(request)
    limits = {
        "max_wait_ms": limit(request, "maxWaitMs", 1_000, 0, MAX_WAIT_MS),
        "max_records": limit(request, "maxRecords", _USUAL_RECORDS, 1, MAX_POLL_RECORDS),
        "max_bytes": limit(request, "maxBytes", _USUAL_BYTES, 1, MAX_POLL_BYTES),
    }
    await request.body()
    records = await unless_gone(request, consumer.poll(request.resources, **limits))
    request.hold(held_bytes(each.record for each in records))
    pieces, _ = await in_turns(request, written(request, records, partial(_record, how)))
    return answer_of([b'{"records":[', *pieces, b"]}"], JSON)


def _record(how: tuple[Encoding, Encoding], consumed: ConsumedRecord) -> bytes | Steps[bytes]:
    topic, partition, record = consumed
    return shown(record, how, {"topic": topic, "partition": partition})


async def commit(request: HttpRequest) -> Response:
    consumer = _consumer(request)
    offsets = None
    if await request.body():
        members = Members(await request.json()).only("offsets")
        if members.get("offsets") is not None:
            offsets = given_offsets(members.items("offsets"))
    refusals = await settled(consumer.commit(request.resources, offsets))
    return json_answer({"refused": refused(refusals)})


async def committed(request: HttpRequest) -> Response:
    consumer = _consumer(request)
    fetched = await settled(consumer.committed(request.resources, consumer.assignment))
    return json_answer({"offsets": shown_offsets(fetched)})


async def positions(request: HttpRequest) -> Response:
    consumer = _consumer(request)
    found = [
        {
            "topic": at.topic,
            "partition": at.partition,
            "offset": await settled(consumer.position(request.resources, at)),
        }
        for at in consumer.assignment
    ]
    return json_answer({"positions": found})


async def seek(request: HttpRequest) -> Response:
    consumer = _consumer(request)
    members = Members(await request.json()).only("offsets", "to", "partitions")
    to = members.get("to")
    if (to is None) == (members.get("offsets") is None):
        raise Problem(400, 'Seek to "offsets", or "to" earliest, latest or committed: name one of the two.')
    if to is None:
        if members.get("partitions") is not None:
            raise Problem(400, 'The offsets name their partitions: "partitions" goes with "to".')
        wanted = given_offsets(members.items("offsets"))
        consumer.seek_all({TopicPartition(new.topic, new.partition): new.offset for new in wanted})
        return json_answer(_shown(consumer))
    partitions = consumer.assignment
    if members.get("partitions") is not None:
        partitions = given_partitions(members.items("partitions"))
    if to == "committed":
        consumer.seek_to_committed(partitions)
    elif to in ("earliest", "latest"):
        consumer.seek_to(partitions, SeekTo.BEGINNING if to == "earliest" else SeekTo.END)
    else:
        raise Problem(400, 'The member "to" must be earliest, latest or committed.')
    return json_answer(_shown(consumer))


async def pause(request: HttpRequest) -> Response:
    consumer = _consumer(request)
    members = Members(await request.json()).only("partitions")
    consumer.pause(given_partitions(members.required_items("partitions")))
    return json_answer(_shown(consumer))


async def resume(request: HttpRequest) -> Response:
    consumer = _consumer(request)
    members = Members(await request.json()).only("partitions")
    consumer.resume(given_partitions(members.required_items("partitions")))
    return json_answer(_shown(consumer))


def _consumer(request: HttpRequest) -> Consumer:
    try:
        return request.broker.consumers.get(
            request.resources, request.path["group"], request.path["consumer"]
        )
    except NoSuchConsumer as error:
        raise Problem(404, str(error), error=error.code.name, errorCode=int(error.code)) from None


def _shown(consumer: Consumer) -> dict[str, Any]:
    return {
        "groupId": consumer.group_id,
        "name": consumer.name,
        "memberId": consumer.member_id,
        "topics": list(consumer.topics),
        "pattern": consumer.pattern or None,
        "assignment": shown_partitions(consumer.assignment),
        "paused": shown_partitions(consumer.paused),
        "idleMs": consumer.settings.idle_ms,
    }


_CONSUMER: Schema = {
    "type": "object",
    "required": ["groupId", "name", "memberId", "topics", "pattern", "assignment", "paused", "idleMs"],
    "properties": {
        "groupId": STRING,
        "name": STRING,
        "memberId": {"type": ["string", "null"]},
        "topics": {"type": "array", "items": STRING},
        "pattern": {"type": ["string", "null"]},
        "assignment": PARTITIONS,
        "paused": PARTITIONS,
        "idleMs": {"type": ["integer", "null"]},
        "url": STRING,
    },
}
_SUBSCRIPTION: Schema = {
    "type": "object",
    "additionalProperties": False,
    "properties": {
        "topics": {"type": ["array", "null"], "items": {"type": "string", "minLength": 1}},
        "pattern": {"type": ["string", "null"], "description": "RE2, for whole names."},
    },
}
_NEW: Schema = {
    "type": "object",
    "additionalProperties": False,
    "properties": {
        **_SUBSCRIPTION["properties"],
        "name": {"type": ["string", "null"], "minLength": 1, "maxLength": 249},
        "partitions": {"type": ["array", "null"], "items": PARTITION},
        "autoOffsetReset": {"enum": [None, *(each.value for each in OffsetReset)]},
        "autoCommit": {"type": ["boolean", "null"]},
        "autoCommitIntervalMs": INTEGER,
        "isolation": {"enum": [None, "read_uncommitted", "read_committed"]},
        "fetchMinBytes": INTEGER,
        "idleMs": INTEGER,
        "rebalanceTimeoutMs": INTEGER,
    },
}
_SOME_PARTITIONS: Schema = {
    "type": "object",
    "required": ["partitions"],
    "additionalProperties": False,
    "properties": {"partitions": PARTITIONS},
}
_SEEK: Schema = {
    "type": "object",
    "additionalProperties": False,
    "properties": {
        "offsets": {"type": ["array", "null"], "items": OFFSET},
        "to": {"enum": [None, "earliest", "latest", "committed"]},
        "partitions": {"type": ["array", "null"], "items": PARTITION},
    },
}
_COMMIT: Schema = {
    "type": "object",
    "additionalProperties": False,
    "properties": {"offsets": {"type": ["array", "null"], "items": OFFSET}},
}
_RECORDS: Schema = {
    "type": "object",
    "required": ["records"],
    "properties": {"records": {"type": "array", "items": OBJECT}},
}
_POSITIONS: Schema = {
    "type": "object",
    "required": ["positions"],
    "properties": {"positions": {"type": "array", "items": OFFSET}},
}
_ENCODING: Schema = {"enum": [each.value for each in Encoding]}
_POLL = (
    Parameter(
        "maxWaitMs",
        "How long to wait for the first record.",
        {"type": "integer", "minimum": 0, "maximum": MAX_WAIT_MS, "default": 1000},
    ),
    Parameter(
        "maxRecords",
        "How many records at most.",
        {"type": "integer", "minimum": 1, "maximum": MAX_POLL_RECORDS, "default": _USUAL_RECORDS},
    ),
    Parameter(
        "maxBytes",
        "How many bytes of keys, values and headers at most; the first record always comes.",
        {"type": "integer", "minimum": 1, "maximum": MAX_POLL_BYTES, "default": _USUAL_BYTES},
    ),
    Parameter("key", "How keys are written.", _ENCODING),
    Parameter("value", "How values are written.", _ENCODING),
)
_PATH = "/groups/{group}/consumers"
_ONE = f"{_PATH}/{{consumer}}"
_IT = {200: json_answer_of("The consumer.", _CONSUMER)}
_TAG = "consumers"

ENDPOINTS = (
    Endpoint(
        "POST",
        _PATH,
        create,
        "Make a consumer of the group, and subscribe it or assign it partitions.",
        body=json_body(_NEW),
        answers={201: json_answer_of("The consumer, and where it is.", _CONSUMER)},
        body_required=False,
        tag=_TAG,
    ),
    Endpoint(
        "GET",
        _PATH,
        list_own,
        "List the consumers of the group that are yours.",
        answers={
            200: json_answer_of(
                "The consumers.",
                {
                    "type": "object",
                    "required": ["consumers"],
                    "properties": {"consumers": {"type": "array", "items": _CONSUMER}},
                },
            )
        },
        tag=_TAG,
    ),
    Endpoint("GET", _ONE, describe, "What a consumer reads.", answers=_IT, tag=_TAG),
    Endpoint(
        "DELETE",
        _ONE,
        delete,
        "Leave the group; what was delivered is committed before, with auto commit.",
        answers={204: Answer("It is gone.")},
        tag=_TAG,
    ),
    Endpoint(
        "POST",
        f"{_ONE}/heartbeat",
        heartbeat,
        "Say that the user is there: the consumer is not idle.",
        answers=_IT,
        tag=_TAG,
    ),
    Endpoint(
        "PUT",
        f"{_ONE}/subscription",
        subscribe,
        "Subscribe to topics or to a pattern, in place of what was before.",
        body=json_body(_SUBSCRIPTION),
        answers=_IT,
        tag=_TAG,
    ),
    Endpoint(
        "DELETE",
        f"{_ONE}/subscription",
        unsubscribe,
        "Leave the group, and keep the consumer.",
        answers={204: Answer("It reads nothing now.")},
        tag=_TAG,
    ),
    Endpoint(
        "PUT",
        f"{_ONE}/assignment",
        assign,
        "Read exactly these partitions, without the group's say.",
        body=json_body(_SOME_PARTITIONS),
        answers=_IT,
        tag=_TAG,
    ),
    Endpoint(
        "GET",
        f"{_ONE}/records",
        poll,
        "Poll: records of its partitions. What earlier polls delivered is done with this.",
        _POLL,
        answers={200: json_answer_of("The records; none if none came in time.", _RECORDS)},
        tag=_TAG,
        quota=CONSUMER_BYTE_RATE,
    ),
    Endpoint(
        "POST",
        f"{_ONE}/commit",
        commit,
        "Commit these offsets, or without a body all that was delivered.",
        body=json_body(_COMMIT),
        answers={200: json_answer_of("All are committed but those that are refused.", REFUSED)},
        body_required=False,
        tag=_TAG,
    ),
    Endpoint(
        "GET",
        f"{_ONE}/committed",
        committed,
        "What the group has committed of the consumer's partitions.",
        answers={200: json_answer_of("The offsets.", OFFSETS)},
        tag=_TAG,
    ),
    Endpoint(
        "GET",
        f"{_ONE}/positions",
        positions,
        "Where the next poll goes on.",
        answers={200: json_answer_of("The positions.", _POSITIONS)},
        tag=_TAG,
    ),
    Endpoint(
        "POST",
        f"{_ONE}/seek",
        seek,
        "Let the next poll go on elsewhere.",
        body=json_body(_SEEK),
        answers=_IT,
        tag=_TAG,
    ),
    Endpoint(
        "POST",
        f"{_ONE}/pause",
        pause,
        "Read nothing of these partitions until they are resumed.",
        body=json_body(_SOME_PARTITIONS),
        answers=_IT,
        tag=_TAG,
    ),
    Endpoint(
        "POST",
        f"{_ONE}/resume",
        resume,
        "Read these partitions again.",
        body=json_body(_SOME_PARTITIONS),
        answers=_IT,
        tag=_TAG,
    ),
)
