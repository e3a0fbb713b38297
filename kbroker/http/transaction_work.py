"""What is done in a transaction over HTTP: records are published, offsets of groups are added.

With an Idempotency-Key a request that is sent again is answered as the first time. That holds as long as the
transaction does: neither outlives the broker's process.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from kbroker.http import idempotency
from kbroker.http.answers import json_answer
from kbroker.http.endpoint import STRING, Endpoint, Schema, json_answer_of, json_body
from kbroker.http.given_records import (
    ADDRESSED,
    ADDRESSED_ALONE,
    CODEC_PARAMETER,
    RAW_PARAMETERS,
    WITH_BOTH,
    Addressed,
    addressed_records,
    codec_of,
    many,
    one_record,
    raw_record,
    records_of,
    topic_of,
    wrapper,
)
from kbroker.http.groups import OFFSET, given_offsets
from kbroker.http.members import Members
from kbroker.http.problems import Problem
from kbroker.http.published_records import ONE_OR_MANY, PUBLISHED, answer_of_many, answer_of_one
from kbroker.http.transactions import ID, ONE, OVER, TAG, told, transactions_of
from kbroker.http.turns import in_turns
from kbroker.operations.consumers.errors import NoSuchConsumer
from kbroker.operations.group_offsets import NO_MEMBER, Member, NewOffset
from kbroker.pending import Pending
from kbroker.quotas.entities import PRODUCER_BYTE_RATE

if TYPE_CHECKING:
    from kbroker.http.answers import Response
    from kbroker.http.request import HttpRequest
    from kbroker.operations.publishing import Published
    from kbroker.operations.transactions.open_transaction import OpenTransaction

T = TypeVar("T")


async def publish(request: HttpRequest) -> Response:
    return await idempotency.once(request, lambda: _publish(request))


async def _publish(request: HttpRequest) -> Response:
    _check_conditions(request)
    given, one, codec_name = records_of(await request.json())
    codec = codec_of(request, codec_name)
    if one:
        topic = topic_of(given, "the record")
        record = await one_record(request, given, WITH_BOTH)
        (only,) = await _published(request, [(topic, record)], codec)
        return answer_of_one(topic, only)
    addressed = await in_turns(request, addressed_records(given, request.now_ms))
    published = await _published(request, addressed, codec)
    told = [(topic, each) for (topic, _), each in zip(addressed, published, strict=True)]
    return await answer_of_many(request, told, None)


async def publish_bytes(request: HttpRequest) -> Response:
    return await idempotency.once(request, lambda: _publish_bytes(request))


async def _publish_bytes(request: HttpRequest) -> Response:
    _check_conditions(request)
    topic, record = request.path["topic"], await raw_record(request, request.path_int("partition"))
    (published,) = await _published(request, [(topic, record)], codec_of(request))
    return answer_of_one(topic, published)


async def _published(request: HttpRequest, records: list[Addressed], codec: int) -> list[Published]:
    def work(transaction: OpenTransaction) -> Pending[list[Published]]:
        return transaction.publish(request.resources, records, codec=codec)

    return await _within(request, work)


def _check_conditions(request: HttpRequest) -> None:
    """What is asked of a publish, and a transaction cannot promise, must not be passed over."""
    if request.query("acks", str, "all") not in ("all", "-1"):
        raise Problem(400, "What is published in a transaction has acks=all.")
    for name in ("if-match", "x-origin-id", "x-origin-sequence"):
        if name in request.headers:
            raise Problem(400, f"{name.title()} is for publishing without a transaction.")


async def add_offsets(request: HttpRequest) -> Response:
    return await idempotency.once(request, lambda: _add_offsets(request))


async def _add_offsets(request: HttpRequest) -> Response:
    members = Members(await request.json()).only(
        "groupId", "offsets", "consumer", "memberId", "generationId", "groupInstanceId"
    )
    group_id, name = members.text("groupId"), members.optional_text("consumer")
    offsets = None if members.get("offsets") is None else given_offsets(members.items("offsets"))
    member = _member(members)
    resources = request.resources
    if name is None:
        if offsets is None:
            raise Problem(
                400, 'Give "offsets", or the name of a "consumer" of the group that has read so far.'
            )
        new = offsets
        await _within(request, lambda it: it.add_offsets(resources, group_id, new, member))
        return json_answer(_shown_offsets(group_id, new))
    if member is not NO_MEMBER:
        raise Problem(400, "A consumer knows itself which member it is.")

    def add(transaction: OpenTransaction) -> Pending[Sequence[NewOffset]]:
        try:
            consumer = request.broker.consumers.get(resources, group_id, name)
        except NoSuchConsumer as error:
            return transaction.fail(resources, error)
        return transaction.add_consumed(resources, consumer, offsets)

    return json_answer(_shown_offsets(group_id, await _within(request, add)))


def _member(members: Members) -> Member:
    member_id, generation = members.optional_text("memberId"), members.optional_integer("generationId")
    instance_id = members.optional_text("groupInstanceId")
    if (member_id is None) != (generation is None):
        raise Problem(400, "memberId and generationId come together.")
    if member_id is None or generation is None:
        if instance_id is not None:
            raise Problem(400, "groupInstanceId comes with memberId and generationId.")
        return NO_MEMBER
    return Member(member_id, generation, instance_id)


def _shown_offsets(group_id: str, offsets: Sequence[NewOffset]) -> dict[str, Any]:
    return {
        "groupId": group_id,
        "offsets": [
            {"topic": new.topic, "partition": new.partition, "offset": new.offset} for new in offsets
        ],
    }


async def _within(request: HttpRequest, work: Callable[[OpenTransaction], Pending[T]]) -> T:
    return await told(
        request, lambda: work(transactions_of(request).get(request.resources, request.path["transaction"]))
    )


# what the document says

_GROUP: dict[str, Schema] = {"groupId": STRING}
_OFFSETS: Schema = {
    "type": "object",
    "required": ["groupId"],
    "additionalProperties": False,
    "properties": {
        **_GROUP,
        "offsets": {"type": ["array", "null"], "items": OFFSET},
        "consumer": {
            "type": ["string", "null"],
            "description": "A consumer that you made by HTTP: what it has read, or these offsets.",
        },
        "memberId": {"type": ["string", "null"], "description": "Of a Kafka client that is in the group."},
        "generationId": {"type": ["integer", "null"], "description": "The member's generation, or epoch."},
        "groupInstanceId": {"type": ["string", "null"]},
    },
}
_ADDED: Schema = {
    "type": "object",
    "required": ["groupId", "offsets"],
    "properties": {**_GROUP, "offsets": {"type": "array", "items": OFFSET}},
}

ENDPOINTS = (
    Endpoint(
        "POST",
        f"{ONE}/messages",
        publish,
        "Publish one record, or several, to the topics that they name, in the transaction.",
        (ID, CODEC_PARAMETER, idempotency.PARAMETER),
        body=json_body({"anyOf": [ADDRESSED_ALONE, many(ADDRESSED), wrapper(ADDRESSED)]}),
        answers={200: json_answer_of("Where they are.", ONE_OR_MANY), **OVER},
        at_once=True,
        quota=PRODUCER_BYTE_RATE,
        tag=TAG,
    ),
    Endpoint(
        "POST",
        f"{ONE}/topics/{{topic}}/partitions/{{partition}}",
        publish_bytes,
        "Publish the body, whatever it is, as the value of one record in the transaction.",
        (ID, *RAW_PARAMETERS, CODEC_PARAMETER, idempotency.PARAMETER),
        body={"application/octet-stream": {"description": "Any bytes."}},
        answers={200: json_answer_of("Where it is.", PUBLISHED), **OVER},
        body_required=False,
        at_once=True,
        quota=PRODUCER_BYTE_RATE,
        tag=TAG,
    ),
    Endpoint(
        "POST",
        f"{ONE}/offsets",
        add_offsets,
        "Let a group's offsets be committed with the transaction.",
        (ID, idempotency.PARAMETER),
        body=json_body(_OFFSETS),
        answers={200: json_answer_of("They are, if it commits.", _ADDED), **OVER},
        at_once=True,
        tag=TAG,
    ),
)
