"""Consumer instances of version 2: the consumers of the broker, by the paths and names that its clients know.

What differs from the plain endpoints: an instance has a format, in which all its records come; a commit names
the offset of the last record that was read, not of the next; a poll waits for consumer.request.timeout.ms at
most. Other than Confluent's, an instance without fetch.min.bytes answers a poll as soon as it has records.
"""

from __future__ import annotations

from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from urllib.parse import quote

from kbroker.http.answers import Response, no_content
from kbroker.http.endpoint import INTEGER, STRING, Endpoint, Parameter, Schema
from kbroker.http.members import Members
from kbroker.http.pieces import answer_of, held_bytes, written
from kbroker.http.rest_proxy.errors import PARTITION_NOT_FOUND, RestError
from kbroker.http.rest_proxy.v2.endpoints import WITH_DATA, endpoint
from kbroker.http.rest_proxy.v2.media import Format, answer, check_content_type, wanted_format
from kbroker.http.rest_proxy.v2.records import RECORDS, shown_record
from kbroker.http.turns import in_turns
from kbroker.http.waiting import unless_gone
from kbroker.network.awaiting import settled
from kbroker.operations.consumers.consumer import MAX_POLL_BYTES, Consumer
from kbroker.operations.consumers.errors import (
    ConsumerExists,
    IllegalState,
    NoSuchConsumer,
    NotAssigned,
    TooManyConsumers,
)
from kbroker.operations.consumers.held import SeekTo
from kbroker.operations.consumers.settings import ConsumerSettings, OffsetReset
from kbroker.operations.group_offsets import CommittedOffset, NewOffset, TopicPartition
from kbroker.operations.partitions import offset_at
from kbroker.quotas.entities import CONSUMER_BYTE_RATE

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from kbroker.http.request import HttpRequest

INSTANCE_NOT_FOUND: Final = 40403
FORMAT_MISMATCH: Final = 40601
ALREADY_EXISTS: Final = 40902
ILLEGAL_STATE: Final = 40903
INVALID_CONFIG: Final = 42204
_UNPROCESSABLE: Final = 422
_TOO_MANY: Final = 42901

_USUAL_WAIT_MS: Final = 1_000
_MAX_WAIT_MS: Final = 60_000


class Instance(NamedTuple):
    """What version 2 keeps with a consumer."""

    format: Format = Format.BINARY
    request_timeout_ms: int = _USUAL_WAIT_MS


async def create(request: HttpRequest) -> Response:
    check_content_type(request)
    members = await _members(request, required=False)
    name = _text(members, "id") or _text(members, "name")
    format_ = _format(_text(members, "format"))
    consumer = request.broker.consumers.open(
        request.resources, request.path["group"], _settings(request, members), name
    )
    timeout_ms = _number(members, "consumer.request.timeout.ms", _USUAL_WAIT_MS, 0, 1 << 31)
    consumer.kept = Instance(format_, min(timeout_ms, _MAX_WAIT_MS))
    path = f"/consumers/{quote(consumer.group_id, safe='')}/instances/{quote(consumer.name, safe='')}"
    return answer(request, {"instance_id": consumer.name, "base_uri": request.base_url + path})


def _settings(request: HttpRequest, members: Members) -> ConsumerSettings:
    reset = _text(members, "auto.offset.reset") or "latest"
    if reset not in {each.value for each in OffsetReset}:
        raise RestError(INVALID_CONFIG, "auto.offset.reset must be earliest, latest or none.")
    auto_commit = members.get("auto.commit.enable")
    if str(auto_commit).lower() not in ("none", "true", "false"):
        raise RestError(INVALID_CONFIG, "auto.commit.enable must be true or false.")
    return ConsumerSettings(
        auto_offset_reset=OffsetReset(reset),
        auto_commit=str(auto_commit).lower() != "false",
        fetch_min_bytes=max(1, _number(members, "fetch.min.bytes", 1, -1, MAX_POLL_BYTES)),
        idle_ms=request.broker.settings["kbroker.http.consumer.idle.ms"],
        client_id=request.caller.client_id or "rest-proxy",
        client_host=f"/{request.caller.peer_host}",
    )


async def delete(request: HttpRequest) -> Response:
    await settled(_consumer(request).close())
    return no_content()


async def subscribe(request: HttpRequest) -> Response:
    consumer = _consumer(request)
    members = await _members(request)
    topics, pattern = members.get("topics"), members.optional_text("topic_pattern")
    if topics is not None and not (
        isinstance(topics, list) and all(isinstance(each, str) and each for each in topics)
    ):
        raise RestError(_UNPROCESSABLE, "topics must be a list of names.")
    if not topics and not pattern:
        raise RestError(_UNPROCESSABLE, "Name what to subscribe to: topics or topic_pattern.")
    if topics and pattern:
        raise IllegalState("Subscription to topics, partitions and pattern are mutually exclusive.")
    consumer.subscribe(request.resources, topics or (), pattern or "")
    return no_content()


async def subscription(request: HttpRequest) -> Response:
    consumer = _consumer(request)
    topics = consumer.topics or sorted({at.topic for at in consumer.assignment if consumer.pattern})
    return answer(request, {"topics": list(topics)})


async def unsubscribe(request: HttpRequest) -> Response:
    await settled(_consumer(request).unsubscribe())
    return no_content()


async def assign(request: HttpRequest) -> Response:
    consumer = _consumer(request)
    consumer.assign(request.resources, _partitions(await _members(request)))
    return no_content()


async def assignments(request: HttpRequest) -> Response:
    partitions = [
        {"topic": topic, "partition": partition} for topic, partition in _consumer(request).assignment
    ]
    return answer(request, {"partitions": partitions})


async def seek(request: HttpRequest) -> Response:
    consumer = _consumer(request)
    members = await _members(request)
    offsets: dict[TopicPartition, int] = {}
    for each in _entries(members, "offsets"):
        offset = each.long("offset")
        if offset < 0:
            raise RestError(_UNPROCESSABLE, "An offset must be 0 or more.")
        offsets[_partition(each)] = offset
    for each in _entries(members, "timestamps"):
        at, timestamp = _partition(each), _moment(each.get("timestamp"))
        found = await settled(offset_at(request.resources, *at, timestamp))
        if found is not None:
            offsets[at] = found.offset
        else:
            consumer.seek_to([at], SeekTo.END)
    consumer.seek_all(offsets)
    return no_content()


async def seek_to_beginning(request: HttpRequest) -> Response:
    _consumer(request).seek_to(_partitions(await _members(request)), SeekTo.BEGINNING)
    return no_content()


async def seek_to_end(request: HttpRequest) -> Response:
    _consumer(request).seek_to(_partitions(await _members(request)), SeekTo.END)
    return no_content()


async def commit(request: HttpRequest) -> Response:
    consumer = _consumer(request)
    members = await _members(request, required=False)
    offsets: list[NewOffset] | None = None
    if members.get("offsets") is not None:
        offsets = [
            NewOffset(
                *_partition(each),
                each.long("offset") + 1,  # the client names what it has read
                metadata=each.optional_text("metadata") or "",
            )
            for each in _entries(members, "offsets")
        ]
    refusals = await settled(consumer.commit(request.resources, offsets))
    for error in refusals.values():
        raise error
    return answer(request, [])


async def committed(request: HttpRequest) -> Response:
    consumer = _consumer(request)
    if not await request.body():
        raise RestError(PARTITION_NOT_FOUND, "Name the partitions whose offsets are asked for, in a body.")
    fetched = await settled(consumer.committed(request.resources, _partitions(await _members(request))))
    for found in fetched.values():
        if isinstance(found, Exception):
            raise found
    return answer(
        request,
        {
            "offsets": [
                {
                    "topic": at.topic,
                    "partition": at.partition,
                    "offset": found.offset,
                    "metadata": found.metadata,
                }
                for at, found in fetched.items()
                if isinstance(found, CommittedOffset)
            ]
        },
    )


async def records(request: HttpRequest) -> Response:
    consumer = _consumer(request)
    instance = _kept(consumer)
    if wanted_format(request, instance.format) is None:
        raise RestError(
            FORMAT_MISMATCH,
            f"The instance has the format {instance.format}: accept {instance.format.media_type}.",
        )
    timeout_ms, max_bytes = request.query("timeout", int, -1), request.query("max_bytes", int, -1)
    most_ms = instance.request_timeout_ms
    wait_ms = most_ms if timeout_ms <= 0 else min(timeout_ms, most_ms)
    await request.body()
    polled = await unless_gone(
        request,
        consumer.poll(
            request.resources,
            max_wait_ms=wait_ms,
            max_bytes=MAX_POLL_BYTES if max_bytes <= 0 else min(max_bytes, MAX_POLL_BYTES),
        ),
    )
    try:
        request.hold(held_bytes(each.record for each in polled))
        pieces, _ = await in_turns(request, written(request, polled, partial(shown_record, instance.format)))
    except RestError:
        # They were not delivered: the next poll brings them again.
        first: dict[TopicPartition, int] = {}
        for topic, partition, record in polled:
            first.setdefault(TopicPartition(topic, partition), record.offset)
        consumer.seek_all(first)
        raise
    return answer_of([b"[", *pieces, b"]"], instance.format.media_type)


# what clients send


async def _members(request: HttpRequest, *, required: bool = True) -> Members:
    check_content_type(request)
    body = await request.body()
    if not body.strip() and not required:
        return Members({})
    document = await request.json()
    return Members({} if document is None and not required else document)


def _consumer(request: HttpRequest) -> Consumer:
    return request.broker.consumers.get(request.resources, request.path["group"], request.path["instance"])


def _kept(consumer: Consumer) -> Instance:
    return consumer.kept if isinstance(consumer.kept, Instance) else Instance()


def _format(text: str | None) -> Format:
    if text is None:
        return Format.BINARY
    try:
        format_ = Format(text.lower())
    except ValueError:
        raise RestError(_UNPROCESSABLE, f"Invalid format type: {text[:50]!r}.") from None
    return format_.without_schema()


def _text(members: Members, name: str) -> str | None:
    value = members.optional_text(name)
    if value is not None and not 1 <= len(value) <= 249:
        raise RestError(INVALID_CONFIG, f"{name} has 1 to 249 characters.")
    return value


def _number(members: Members, name: str, default: int, least: int, most: int) -> int:
    value = members.get(name)
    if value is None:
        return default
    try:
        number = int(value) if isinstance(value, str | int) and not isinstance(value, bool) else None
    except ValueError:
        number = None
    if number is None or not least <= number <= most:
        raise RestError(INVALID_CONFIG, f"{name} must be a number from {least} to {most}.")
    return number


def _entries(members: Members, name: str) -> list[Members]:
    return [Members(each, f"{name}[{index}]") for index, each in enumerate(members.items(name))]


def _partitions(members: Members) -> list[TopicPartition]:
    members.required_items("partitions")
    return [_partition(each) for each in _entries(members, "partitions")]


def _partition(members: Members) -> TopicPartition:
    return TopicPartition(members.text("topic"), members.integer("partition"))


def _moment(given: Any) -> int:
    """Milliseconds of an ISO 8601 time, or of a number of seconds."""
    try:
        if isinstance(given, int | float) and not isinstance(given, bool):
            return int(given * 1000)
        moment = datetime.fromisoformat(given)
        if moment.tzinfo is not None:
            return max(0, round(moment.timestamp() * 1000))
    except (TypeError, ValueError, OverflowError):
        pass
    raise RestError(_UNPROCESSABLE, "A timestamp is a time such as 2026-01-31T12:00:00Z.")


# their failures


def _told(
    handle: Callable[[HttpRequest], Awaitable[Response]],
) -> Callable[[HttpRequest], Awaitable[Response]]:
    """The same, with what is refused to users of consumers in version 2's codes."""

    async def told(request: HttpRequest) -> Response:
        try:
            return await handle(request)
        except NoSuchConsumer as error:
            raise RestError(INSTANCE_NOT_FOUND, str(error)) from None
        except ConsumerExists as error:
            raise RestError(ALREADY_EXISTS, str(error)) from None
        except (IllegalState, NotAssigned) as error:
            raise RestError(ILLEGAL_STATE, str(error)) from None
        except TooManyConsumers as error:
            raise RestError(_TOO_MANY, str(error)) from None

    return told


_PARTITION: Schema = {
    "type": "object",
    "required": ["topic", "partition"],
    "properties": {"topic": STRING, "partition": INTEGER},
}
_SOME_PARTITIONS: Schema = {
    "type": "object",
    "required": ["partitions"],
    "properties": {"partitions": {"type": "array", "items": _PARTITION}},
}
_OFFSETS: Schema = {
    "type": "object",
    "properties": {
        "offsets": {
            "type": ["array", "null"],
            "items": {
                "type": "object",
                "required": ["topic", "partition", "offset"],
                "properties": {
                    "topic": STRING,
                    "partition": INTEGER,
                    "offset": INTEGER,
                    "metadata": {"type": ["string", "null"]},
                },
            },
        }
    },
}
_SEEK: Schema = {
    "type": "object",
    "properties": {
        "offsets": _OFFSETS["properties"]["offsets"],
        "timestamps": {
            "type": ["array", "null"],
            "items": {
                "type": "object",
                "required": ["topic", "partition", "timestamp"],
                "properties": {
                    "topic": STRING,
                    "partition": INTEGER,
                    "timestamp": {"type": ["string", "number"]},
                },
            },
        },
    },
}
_NEW: Schema = {
    "type": ["object", "null"],
    "properties": {
        "id": {"type": ["string", "null"]},
        "name": {"type": ["string", "null"]},
        "format": {"enum": [None, *(str(each) for each in Format)]},
        "auto.offset.reset": {"enum": [None, *(each.value for each in OffsetReset)]},
        "auto.commit.enable": {"type": ["boolean", "string", "null"]},
        "fetch.min.bytes": {"type": ["integer", "string", "null"]},
        "consumer.request.timeout.ms": {"type": ["integer", "string", "null"]},
    },
}
_CREATED: Schema = {
    "type": "object",
    "required": ["instance_id", "base_uri"],
    "properties": {"instance_id": STRING, "base_uri": STRING},
}
_SUBSCRIPTION: Schema = {
    "type": "object",
    "properties": {
        "topics": {"type": ["array", "null"], "items": STRING},
        "topic_pattern": {"type": ["string", "null"]},
    },
}
_TOPICS: Schema = {
    "type": "object",
    "required": ["topics"],
    "properties": {"topics": {"type": "array", "items": STRING}},
}
_POLL = (
    Parameter("timeout", "How long to wait, in ms: at most consumer.request.timeout.ms.", INTEGER),
    Parameter("max_bytes", "How many bytes of keys and values at most.", INTEGER),
)
_GROUP = "/consumers/{group}"
_ONE = f"{_GROUP}/instances/{{instance}}"
_DONE: dict[int, Schema | None] = {204: None}


def _endpoint(
    method: str,
    path: str,
    handle: Callable[[HttpRequest], Awaitable[Response]],
    summary: str,
    body: Schema | None = None,
    answers: dict[int, Schema | None] = _DONE,
    **more: Any,
) -> Endpoint:
    return endpoint(method, path, _told(handle), summary, body=body, answers=answers, **more)


ENDPOINTS: tuple[Endpoint, ...] = (
    _endpoint(
        "POST", _GROUP, create, "Make a consumer instance.", _NEW, {200: _CREATED}, body_required=False
    ),
    _endpoint("DELETE", _ONE, delete, "Delete an instance: it leaves its group."),
    _endpoint(
        "POST", f"{_ONE}/subscription", subscribe, "Subscribe to topics or to a pattern.", _SUBSCRIPTION
    ),
    _endpoint(
        "GET",
        f"{_ONE}/subscription",
        subscription,
        "What an instance is subscribed to.",
        answers={200: _TOPICS},
    ),
    _endpoint("DELETE", f"{_ONE}/subscription", unsubscribe, "End the subscription, and keep the instance."),
    _endpoint("POST", f"{_ONE}/assignments", assign, "Read exactly these partitions.", _SOME_PARTITIONS),
    _endpoint(
        "GET",
        f"{_ONE}/assignments",
        assignments,
        "The partitions that an instance reads.",
        answers={200: _SOME_PARTITIONS},
    ),
    _endpoint("POST", f"{_ONE}/positions", seek, "Let the next poll go on at these offsets or times.", _SEEK),
    _endpoint(
        "POST",
        f"{_ONE}/positions/beginning",
        seek_to_beginning,
        "Let the next poll go on at the beginning.",
        _SOME_PARTITIONS,
    ),
    _endpoint(
        "POST", f"{_ONE}/positions/end", seek_to_end, "Let the next poll go on at the end.", _SOME_PARTITIONS
    ),
    _endpoint(
        "POST",
        f"{_ONE}/offsets",
        commit,
        "Commit what was read up to these offsets, or all that was delivered.",
        {**_OFFSETS, "type": ["object", "null"]},
        {200: {"type": "array"}},
        body_required=False,
    ),
    _endpoint(
        "GET",
        f"{_ONE}/offsets",
        committed,
        "What the group has committed of these partitions.",
        _SOME_PARTITIONS,
        {200: _OFFSETS},
    ),
    _endpoint(
        "GET",
        f"{_ONE}/records",
        records,
        "Poll: records of the instance's partitions.",
        answers={200: RECORDS},
        parameters=_POLL,
        answer_types=WITH_DATA,
        quota=CONSUMER_BYTE_RATE,
    ),
)
