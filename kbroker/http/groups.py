"""Groups: listed, described, their lag; offsets read, committed from outside, reset and deleted.

Consumers that are members of groups are in consumers.py.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from kbroker.errors import describe as described_error
from kbroker.http.answers import json_answer, no_content
from kbroker.http.endpoint import (
    BOOLEAN,
    INTEGER,
    STRING,
    Answer,
    Endpoint,
    Parameter,
    Schema,
    json_answer_of,
    json_body,
)
from kbroker.http.members import Members
from kbroker.http.paging import LIMIT, NEXT, limit_of
from kbroker.http.problems import Problem
from kbroker.http.turns import in_turns
from kbroker.network.awaiting import settled
from kbroker.operations.auditing import audited
from kbroker.operations.group_lag import GroupLag, group_lag
from kbroker.operations.group_offsets import (
    CommittedOffset,
    Fetched,
    NewOffset,
    Refusals,
    TopicPartition,
    commit_offsets,
    committed_offsets,
    delete_offsets,
)
from kbroker.operations.group_reset import ResetTo, reset_offsets
from kbroker.operations.groups import DescribedGroup, delete_group, describe_group, list_groups

if TYPE_CHECKING:
    from kbroker.http.answers import Response
    from kbroker.http.request import HttpRequest


async def list_all(request: HttpRequest) -> Response:
    page = list_groups(
        request.resources,
        limit=limit_of(request),
        states=request.parameters.get("state", ()),
        types=request.parameters.get("type", ()),
        prefix=request.query("prefix", str, ""),
        after=request.query("after", str, ""),
    )
    return json_answer(
        {
            "groups": [
                {"groupId": each.group_id, "type": each.type, "state": each.state} for each in page.groups
            ],
            "next": page.groups[-1].group_id if page.more else None,
        }
    )


async def describe(request: HttpRequest) -> Response:
    group = await in_turns(request, describe_group(request.resources, request.path["group"]))
    return json_answer(described_group(group))


async def delete(request: HttpRequest) -> Response:
    await settled(delete_group(request.resources, request.path["group"], now_ms=request.now_ms))
    return no_content()


async def lag(request: HttpRequest) -> Response:
    found: GroupLag = await in_turns(request, group_lag(request.resources, request.path["group"]))
    return json_answer(
        {
            "groupId": found.group.group_id,
            "type": found.group.type,
            "state": found.group.state,
            "lag": found.total,
            "partitions": [
                {
                    "topic": each.topic,
                    "partition": each.partition,
                    "committedOffset": each.committed_offset,
                    "logStartOffset": each.log_start_offset,
                    "logEndOffset": each.log_end_offset,
                    "lag": each.lag,
                    "memberId": None if each.member is None else each.member.member_id,
                    "clientId": None if each.member is None else each.member.client_id,
                }
                for each in found.partitions
            ],
        }
    )


async def get_offsets(request: HttpRequest) -> Response:
    fetched = await settled(committed_offsets(request.resources, request.path["group"]))
    return json_answer({"offsets": shown_offsets(fetched)})


async def commit(request: HttpRequest) -> Response:
    members = Members(await request.json()).only("offsets")
    offsets = given_offsets(members.required_items("offsets"))
    group_id = request.path["group"]
    refusals = await settled(
        audited(
            request.resources,
            "GROUP",
            group_id,
            lambda: commit_offsets(request.resources, group_id, offsets, now_ms=request.now_ms),
        )
    )
    return json_answer({"refused": refused(refusals)})


async def delete_some_offsets(request: HttpRequest) -> Response:
    resources, group_id = request.resources, request.path["group"]
    topic, partition = request.query("topic", str), request.query("partition", int)
    if topic is None:
        raise Problem(400, "Name the topic whose offsets are to be deleted: ?topic=….")
    if partition is None:
        fetched = await settled(committed_offsets(resources, group_id))
        partitions = [at for at in fetched if at.topic == topic]
    else:
        partitions = [TopicPartition(topic, partition)]
    refusals = await settled(
        audited(resources, "GROUP", group_id, lambda: delete_offsets(resources, group_id, partitions))
    )
    return json_answer({"refused": refused(refusals)})


async def reset(request: HttpRequest) -> Response:
    members = Members(await request.json()).only("to", "topics", "partitions", "dryRun")
    topics = None if members.get("topics") is None else given_topics(members.items("topics"))
    partitions = None if members.get("partitions") is None else given_partitions(members.items("partitions"))
    changes = await in_turns(
        request,
        reset_offsets(
            request.resources,
            request.path["group"],
            _reset_to(members.get("to")),
            topics,
            partitions,
            dry_run=members.boolean("dryRun"),
            now_ms=request.now_ms,
        ),
    )
    return json_answer({"offsets": [change._asdict() for change in changes]})


def _reset_to(given: Any) -> ResetTo:
    if given in ("earliest", "latest"):
        return ResetTo(given)
    if isinstance(given, dict) and len(given) == 1:
        (kind,) = given
        if kind in ("offset", "time", "shift"):
            return ResetTo(kind, Members(given, "`to`").long(kind))
    raise Problem(
        400,
        'The member "to" must be "earliest", "latest", {"offset": n}, {"time": ms} or {"shift": n}.',
    )


# what clients send and get


def given_topics(given: list[Any]) -> list[str]:
    if not all(isinstance(each, str) and each for each in given):
        raise Problem(400, "Topics are given by their names: a list of strings.")
    return given


def given_partitions(given: list[Any]) -> list[TopicPartition]:
    """Objects with topic and partition."""
    found = []
    for index, each in enumerate(given):
        members = Members(each, f"partitions[{index}]").only("topic", "partition")
        found.append(TopicPartition(members.text("topic"), members.natural("partition")))
    return found


def given_offsets(given: list[Any]) -> list[NewOffset]:
    """Objects with topic, partition and offset, maybe metadata."""
    found = []
    for index, each in enumerate(given):
        members = Members(each, f"offsets[{index}]").only("topic", "partition", "offset", "metadata")
        offset = members.long("offset")
        if offset < 0:
            raise Problem(400, f"The offset in offsets[{index}] must be 0 or more.")
        found.append(
            NewOffset(
                members.text("topic"),
                members.natural("partition"),
                offset,
                metadata=members.optional_text("metadata") or "",
            )
        )
    return found


def shown_partitions(partitions: Iterable[TopicPartition]) -> list[dict[str, Any]]:
    return [{"topic": topic, "partition": partition} for topic, partition in partitions]


def shown_offsets(fetched: Fetched) -> list[dict[str, Any]]:
    """What is committed; what the caller may not see, and what is not there, is left out."""
    return [
        {
            "topic": at.topic,
            "partition": at.partition,
            "offset": found.offset,
            "metadata": found.metadata,
            "timestamp": found.commit_timestamp_ms,
        }
        for at, found in sorted(fetched.items())
        if isinstance(found, CommittedOffset)
    ]


def refused(refusals: Refusals) -> list[dict[str, Any]]:
    shown = []
    for at, error in sorted(refusals.items(), key=lambda each: each[0]):
        code, message = described_error(error)
        shown.append(
            {
                "topic": at.topic,
                "partition": at.partition,
                "error": code.name,
                "errorCode": int(code),
                "detail": message or code.message,
            }
        )
    return shown


def described_group(group: DescribedGroup) -> dict[str, Any]:
    return {
        "groupId": group.group_id,
        "type": group.type,
        "state": group.state,
        "assignor": group.assignor,
        "epoch": group.epoch,
        "members": [
            {
                "memberId": member.member_id,
                "instanceId": member.instance_id,
                "clientId": member.client_id,
                "host": member.client_host.removeprefix("/"),
                "protocol": member.protocol,
                "epoch": member.epoch,
                "topics": list(member.topics),
                "pattern": member.pattern or None,
                "assignment": shown_partitions(member.assignment),
            }
            for member in group.members
        ],
    }


def _object(required: Iterable[str], **properties: Schema) -> Schema:
    return {"type": "object", "required": list(required), "properties": properties}


def _list(items: Schema) -> Schema:
    return {"type": "array", "items": items}


def _or_null(kind: str) -> Schema:
    return {"type": [kind, "null"]}


PARTITION: Schema = {
    "type": "object",
    "required": ["topic", "partition"],
    "additionalProperties": False,
    "properties": {"topic": STRING, "partition": {"type": "integer", "minimum": 0}},
}
PARTITIONS = _list(PARTITION)
OFFSET: Schema = {
    "type": "object",
    "required": ["topic", "partition", "offset"],
    "additionalProperties": False,
    "properties": {
        "topic": STRING,
        "partition": {"type": "integer", "minimum": 0},
        "offset": {"type": "integer", "minimum": 0, "description": "Of the next record to be read."},
        "metadata": _or_null("string"),
    },
}
COMMIT: Schema = {
    "type": "object",
    "required": ["offsets"],
    "additionalProperties": False,
    "properties": {"offsets": _list(OFFSET)},
}
REFUSED: Schema = _object(
    ("refused",),
    refused=_list(
        _object(
            ("topic", "partition", "error", "errorCode", "detail"),
            topic=STRING,
            partition=INTEGER,
            error=STRING,
            errorCode=INTEGER,
            detail=STRING,
        )
    ),
)
OFFSETS: Schema = _object(
    ("offsets",),
    offsets=_list(
        _object(
            ("topic", "partition", "offset", "metadata"),
            topic=STRING,
            partition=INTEGER,
            offset=INTEGER,
            metadata=STRING,
            timestamp=INTEGER,
        )
    ),
)
_LISTED = _object(("groupId", "type", "state"), groupId=STRING, type=STRING, state=STRING)
_MEMBER = _object(
    ("memberId", "clientId", "host", "protocol", "assignment"),
    memberId=STRING,
    instanceId=_or_null("string"),
    clientId=STRING,
    host=STRING,
    protocol=STRING,
    epoch=_or_null("integer"),
    topics=_list(STRING),
    pattern=_or_null("string"),
    assignment=PARTITIONS,
)
_GROUP = _object(
    ("groupId", "type", "state", "members"),
    groupId=STRING,
    type=STRING,
    state=STRING,
    assignor=_or_null("string"),
    epoch=_or_null("integer"),
    members=_list(_MEMBER),
)
_LAG = _object(
    ("groupId", "type", "state", "lag", "partitions"),
    groupId=STRING,
    type=STRING,
    state=STRING,
    lag=INTEGER,
    partitions=_list(
        _object(
            ("topic", "partition", "committedOffset", "logEndOffset", "lag"),
            topic=STRING,
            partition=INTEGER,
            committedOffset=_or_null("integer"),
            logStartOffset=INTEGER,
            logEndOffset=INTEGER,
            lag=INTEGER,
            memberId=_or_null("string"),
            clientId=_or_null("string"),
        )
    ),
)
_RESET: Schema = {
    "type": "object",
    "required": ["to"],
    "additionalProperties": False,
    "properties": {
        "to": {
            "oneOf": [
                {"enum": ["earliest", "latest"]},
                *(
                    {
                        "type": "object",
                        "required": [kind],
                        "additionalProperties": False,
                        "properties": {kind: INTEGER},
                    }
                    for kind in ("offset", "time", "shift")
                ),
            ]
        },
        "topics": {"type": ["array", "null"], "items": {"type": "string", "minLength": 1}},
        "partitions": {"type": ["array", "null"], "items": PARTITION},
        "dryRun": BOOLEAN,
    },
}
_CHANGES = _object(
    ("offsets",),
    offsets=_list(
        _object(
            ("topic", "partition", "before", "after"),
            topic=STRING,
            partition=INTEGER,
            before=_or_null("integer"),
            after=INTEGER,
        )
    ),
)
_TAG = "groups"

ENDPOINTS = (
    Endpoint(
        "GET",
        "/groups",
        list_all,
        "List groups by id, page by page.",
        (
            Parameter("state", "Only groups in this state; any number of times."),
            Parameter("type", "Only groups of this type: classic, consumer, share or streams."),
            Parameter("prefix", "Only groups whose ids begin with this."),
            Parameter("after", "Only groups behind this id: `next` of the page before."),
            LIMIT,
        ),
        answers={
            200: json_answer_of("One page.", _object(("groups", "next"), groups=_list(_LISTED), next=NEXT))
        },
        tag=_TAG,
    ),
    Endpoint(
        "GET",
        "/groups/{group}",
        describe,
        "Describe a group and its members.",
        answers={200: json_answer_of("The group.", _GROUP)},
        tag=_TAG,
    ),
    Endpoint(
        "DELETE",
        "/groups/{group}",
        delete,
        "Delete a group that has no members, with its offsets.",
        answers={204: Answer("It is gone.")},
        tag=_TAG,
    ),
    Endpoint(
        "GET",
        "/groups/{group}/lag",
        lag,
        "How far a group is behind, in all and by partition.",
        answers={200: json_answer_of("The lag.", _LAG)},
        tag=_TAG,
    ),
    Endpoint(
        "GET",
        "/groups/{group}/offsets",
        get_offsets,
        "The committed offsets of a group.",
        answers={200: json_answer_of("The offsets.", OFFSETS)},
        tag=_TAG,
    ),
    Endpoint(
        "POST",
        "/groups/{group}/offsets",
        commit,
        "Commit offsets of a group that has no members.",
        body=json_body(COMMIT),
        answers={200: json_answer_of("All are committed but those that are refused.", REFUSED)},
        tag=_TAG,
    ),
    Endpoint(
        "DELETE",
        "/groups/{group}/offsets",
        delete_some_offsets,
        "Delete a group's offsets of a topic that it does not read.",
        (
            Parameter("topic", "Of which topic.", required=True),
            Parameter("partition", "Of which partition; without it, of all.", INTEGER),
        ),
        answers={200: json_answer_of("All are deleted but those that are refused.", REFUSED)},
        tag=_TAG,
    ),
    Endpoint(
        "POST",
        "/groups/{group}/reset",
        reset,
        "Set where a group without members goes on.",
        body=json_body(_RESET),
        answers={200: json_answer_of("What has changed, or would: dryRun.", _CHANGES)},
        tag=_TAG,
    ),
)
