"""Publishing: raw bytes or JSON, one record or many, to one topic or several; all or nothing, if asked for.

Records of one request that is not atomic succeed or fail each for itself: if some fail, the status is 207,
and each entry says what became of its record. If all fail, that is the failure of the request.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from kbroker.http import idempotency
from kbroker.http.endpoint import Answer, Endpoint, Parameter, json_answer_of, json_body
from kbroker.http.given_records import (
    ADDRESSED,
    ADDRESSED_ALONE,
    ALONE,
    BASE64,
    CODEC_PARAMETER,
    MOST_NUMBER,
    RAW_PARAMETERS,
    RECORD,
    WITH_BOTH,
    WITH_CODEC,
    Addressed,
    addressed_records,
    codec_of,
    many,
    one_record,
    parsed_records,
    raw_record,
    records_of,
    topic_of,
    wrapped_records,
    wrapper,
)
from kbroker.http.problems import Problem
from kbroker.http.published_records import (
    ONE_OR_MANY,
    OUTCOMES,
    PUBLISHED,
    answer_of_many,
    answer_of_one,
    publish_problem,
)
from kbroker.http.turns import in_turns
from kbroker.network.awaiting import settled
from kbroker.operations.atomic_publishing import publish_atomically
from kbroker.operations.batching import NO_PRODUCER, Producer
from kbroker.operations.publishing import ACKS_ALL, NewRecord, Outcome, Refused, publish
from kbroker.quotas.entities import PRODUCER_BYTE_RATE
from kbroker.security.acls import AclOperation
from kbroker.storage.errors import UnexpectedOffset

if TYPE_CHECKING:
    from kbroker.http.answers import Response
    from kbroker.http.request import HttpRequest
    from kbroker.requests.long_requests import Steps

_ACKS = {"all": ACKS_ALL, "-1": ACKS_ALL, "1": 1, "0": 0}
_ORIGIN, _SEQUENCE = "x-origin-id", "x-origin-sequence"
_LONGEST_ORIGIN = 200
_PER_PAUSE = 64  # records


class _How(NamedTuple):
    acks: int
    codec: int
    expected_offset: int | None
    origin: Producer


# one topic


async def publish_bytes(request: HttpRequest) -> Response:
    """The body is the value."""
    return await idempotency.once(request, lambda: _publish_bytes(request))


async def _publish_bytes(request: HttpRequest) -> Response:
    topic, partition = request.path["topic"], request.path_int("partition")
    how = await _how(request)
    record = await raw_record(request, partition)
    (outcome,) = await _published(request, topic, [record], how)
    return answer_of_one(topic, outcome)


async def publish_to_topic(request: HttpRequest) -> Response:
    return await idempotency.once(request, lambda: _publish_to_topic(request))


async def _publish_to_topic(request: HttpRequest) -> Response:
    topic = request.path["topic"]
    given, one, codec = records_of(await request.json())
    how = await _how(request, codec)
    if one:
        record = await one_record(request, given, WITH_CODEC)
        (outcome,) = await _published(request, topic, [record], how)
        return answer_of_one(topic, outcome)
    records = await in_turns(request, parsed_records(given, request.now_ms))
    outcomes = await _published(request, topic, records, how)
    return await answer_of_many(request, [(topic, each) for each in outcomes], topic)


# several topics


async def publish_anywhere(request: HttpRequest) -> Response:
    return await idempotency.once(request, lambda: _publish_anywhere(request))


async def _publish_anywhere(request: HttpRequest) -> Response:
    given, one, codec = records_of(await request.json())
    how = await _how(request, codec)
    if one:
        topic = topic_of(given, "the record")
        record = await one_record(request, given, WITH_BOTH)
        (outcome,) = await _published(request, topic, [record], how)
        return answer_of_one(topic, outcome)
    addressed = await in_turns(request, addressed_records(given, request.now_ms))
    by_topic: dict[str, list[int]] = {}
    for index, (topic, _) in enumerate(addressed):
        by_topic.setdefault(topic, []).append(index)
    if len(by_topic) > 1 and (how.expected_offset is not None or how.origin is not NO_PRODUCER):
        raise Problem(400, "An expected offset, and an origin's sequence, are about one partition.")
    told: list[tuple[str, Outcome]] = [None] * len(addressed)  # type: ignore[list-item]
    for topic, indexes in by_topic.items():
        outcomes: Sequence[Outcome]
        try:
            outcomes = await _published(request, topic, [addressed[index][1] for index in indexes], how)
        except Exception as error:
            outcomes = [Refused(-1, error)] * len(indexes)
        for index, outcome in zip(indexes, outcomes, strict=True):
            told[index] = (topic, outcome)
    return await answer_of_many(request, told, None)


# all or nothing


async def publish_partition_batch(request: HttpRequest) -> Response:
    return await idempotency.once(request, lambda: _publish_partition_batch(request))


async def _publish_partition_batch(request: HttpRequest) -> Response:
    topic, partition = request.path["topic"], request.path_int("partition")
    given, codec = wrapped_records(await request.json())
    how = await _how(request, codec)

    def addressed() -> Steps[list[Addressed]]:
        records = yield from parsed_records(given, request.now_ms, values=True)
        found: list[Addressed] = []
        for index, record in enumerate(records):
            if not index % _PER_PAUSE:
                yield None
            if record.partition not in (None, partition):
                raise Problem(400, f"records[{index}].partition: the path names partition {partition}.")
            found.append((topic, NewRecord(record.record, partition)))
        return found

    return await _publish_all(request, await in_turns(request, addressed()), how, topic)


async def publish_batch(request: HttpRequest) -> Response:
    return await idempotency.once(request, lambda: _publish_batch(request))


async def _publish_batch(request: HttpRequest) -> Response:
    given, codec = wrapped_records(await request.json())
    how = await _how(request, codec)
    addressed = await in_turns(request, addressed_records(given, request.now_ms))
    return await _publish_all(request, addressed, how, None)


async def _publish_all(
    request: HttpRequest, addressed: Sequence[Addressed], how: _How, topic: str | None
) -> Response:
    if how.acks != ACKS_ALL:
        raise Problem(400, "What is published all or nothing has acks=all.")
    if how.origin is not NO_PRODUCER:
        raise Problem(400, "Origins are for records that are not atomic: send an Idempotency-Key instead.")
    try:
        published = await in_turns(
            request,
            publish_atomically(
                request.resources,
                addressed,
                now_ms=request.now_ms,
                codec=how.codec,
                expected_offset=how.expected_offset,
            ),
        )
    except UnexpectedOffset as error:
        raise publish_problem(error) from None
    told = [(name, each) for (name, _), each in zip(addressed, published, strict=True)]
    return await answer_of_many(request, told, topic)


async def _how(request: HttpRequest, codec: str | None = None) -> _How:
    acks = request.query("acks", str, "all")
    if acks not in _ACKS:
        raise Problem(400, f"acks must be all, 1 or 0, not {acks[:50]!r}.")
    return _How(_ACKS[acks], codec_of(request, codec), _expected(request), await _origin(request))


def _expected(request: HttpRequest) -> int | None:
    given = request.headers.get("if-match")
    if given is None:
        return None
    text = given.strip().removeprefix('"').removesuffix('"')
    if not text.isascii() or not text.isdecimal() or len(text) > 18:
        raise Problem(400, f"If-Match must be the offset that the record is to get, not {given[:50]!r}.")
    return int(text)


async def _origin(request: HttpRequest) -> Producer:
    name, text = request.headers.get(_ORIGIN), request.headers.get(_SEQUENCE)
    if name is None and text is None:
        return NO_PRODUCER
    if name is None or text is None:
        raise Problem(400, "X-Origin-Id and X-Origin-Sequence come together.")
    if not 1 <= len(name) <= _LONGEST_ORIGIN or not name.isprintable():
        raise Problem(400, f"X-Origin-Id has 1 to {_LONGEST_ORIGIN} characters.")
    if not text.isascii() or not text.isdecimal() or len(text) > 10 or int(text) > MOST_NUMBER:
        raise Problem(400, f"X-Origin-Sequence must be a number from 0 to {MOST_NUMBER}.")
    topic = request.path.get("topic")
    if topic is not None:  # who may not write makes no origins
        request.resources.check_topic(AclOperation.WRITE, topic)
    else:
        request.resources.producer_ids()
    origins, owner = request.broker.publishing.origins, str(request.caller.principal)
    return Producer(await settled(origins.producer_id(owner, name)), 0, int(text))


# what is answered


async def _published(
    request: HttpRequest, topic: str, records: Sequence[NewRecord], how: _How
) -> list[Outcome]:
    try:
        return await in_turns(
            request,
            publish(
                request.resources,
                topic,
                records,
                now_ms=request.now_ms,
                acks=how.acks,
                codec=how.codec,
                expected_offset=how.expected_offset,
                origin=how.origin,
            ),
        )
    except UnexpectedOffset as error:
        raise publish_problem(error) from None


# what the document says

_CONFLICT = Answer(
    "The record would get another offset than If-Match says: `nextOffset`. Nothing is written."
)
_PLACES = {409: _CONFLICT}
_ACKS_PARAMETER = Parameter("acks", "all if not given.", {"type": "string", "enum": [*_ACKS]})
_IF_MATCH = Parameter(
    "If-Match",
    "The offset that the (first) record must get.",
    {"type": "string", "pattern": "^[0-9]{1,18}$"},
    "header",
)
_ORIGIN_PARAMETERS = (
    Parameter(
        "X-Origin-Id",
        "Who numbers its records, of each partition without a gap: what comes again is not written again.",
        {"type": "string", "pattern": "^[A-Za-z0-9._:-]{1,200}$"},
        "header",
    ),
    Parameter(
        "X-Origin-Sequence",
        "The number of the (first) record.",
        {"type": "integer", "minimum": 0, "maximum": MOST_NUMBER},
        "header",
    ),
)
_EACH = (_ACKS_PARAMETER, CODEC_PARAMETER, _IF_MATCH, idempotency.PARAMETER, *_ORIGIN_PARAMETERS)
_ALL = (CODEC_PARAMETER, _IF_MATCH, idempotency.PARAMETER)
_SOME_FAILED = json_answer_of("Some records are published, some are not.", OUTCOMES)
_TAG = "publishing"

ENDPOINTS = (
    Endpoint(
        "POST",
        "/topics/{topic}/partitions/{partition}",
        publish_bytes,
        "Publish the body, whatever it is, as the value of one record.",
        (*RAW_PARAMETERS, *_EACH),
        body={"application/octet-stream": {"description": "Any bytes."}},
        answers={200: json_answer_of("Where it is.", PUBLISHED), **_PLACES},
        body_required=False,
        at_once=True,
        tag=_TAG,
        quota=PRODUCER_BYTE_RATE,
    ),
    Endpoint(
        "POST",
        "/topics/{topic}/messages",
        publish_to_topic,
        "Publish one record, or several, to a topic.",
        _EACH,
        body=json_body({"anyOf": [ALONE, many(RECORD), wrapper(RECORD)]}),
        answers={200: json_answer_of("Where they are.", ONE_OR_MANY), 207: _SOME_FAILED, **_PLACES},
        at_once=True,
        tag=_TAG,
        quota=PRODUCER_BYTE_RATE,
    ),
    Endpoint(
        "POST",
        "/messages",
        publish_anywhere,
        "Publish one record, or several, to the topics that they name.",
        _EACH,
        body=json_body({"anyOf": [ADDRESSED_ALONE, many(ADDRESSED), wrapper(ADDRESSED)]}),
        answers={200: json_answer_of("Where they are.", ONE_OR_MANY), 207: _SOME_FAILED, **_PLACES},
        at_once=True,
        tag=_TAG,
        quota=PRODUCER_BYTE_RATE,
    ),
    Endpoint(
        "POST",
        "/topics/{topic}/partitions/{partition}/batch",
        publish_partition_batch,
        "Publish records to a partition: all or nothing.",
        _ALL,
        body=json_body(wrapper({"anyOf": [{**BASE64, "type": "string"}, RECORD]})),
        answers={200: json_answer_of("Where they are.", OUTCOMES), **_PLACES},
        at_once=True,
        tag=_TAG,
        quota=PRODUCER_BYTE_RATE,
    ),
    Endpoint(
        "POST",
        "/messages/batch",
        publish_batch,
        "Publish records to one topic or several: all or nothing.",
        _ALL,
        body=json_body(wrapper(ADDRESSED)),
        answers={200: json_answer_of("Where they are.", OUTCOMES), **_PLACES},
        at_once=True,
        tag=_TAG,
        quota=PRODUCER_BYTE_RATE,
    ),
)
