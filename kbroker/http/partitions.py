"""Partitions: who leads them, their offsets and sizes; more of them; records deleted from their front."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kbroker.http.answers import json_answer
from kbroker.http.cluster import client_of, node_document
from kbroker.http.endpoint import INTEGER, STRING, Endpoint, Parameter, Schema, json_answer_of, json_body
from kbroker.http.members import Members
from kbroker.http.moments import timestamp_of
from kbroker.http.paging import LIMIT, NEXT, limit_of
from kbroker.http.problems import Problem
from kbroker.http.record_parameters import ISOLATION_PARAMETER, reads_committed
from kbroker.http.topics import described, topic_id_text
from kbroker.http.turns import in_turns
from kbroker.network.awaiting import settled
from kbroker.operations.auditing import audited
from kbroker.operations.cluster import describe_node
from kbroker.operations.deletion import HIGH_WATERMARK, delete_records
from kbroker.operations.offsets import EARLIEST, LATEST, MAX_TIMESTAMP
from kbroker.operations.partitions import (
    PartitionDescription,
    describe_partition,
    describe_partitions,
    offset_at,
    record_times,
    replicas_of,
    topic_with_partition,
)
from kbroker.operations.topics import add_partitions
from kbroker.requests.long_requests import each
from kbroker.security.acls import AclOperation

if TYPE_CHECKING:
    from kbroker.http.answers import Response
    from kbroker.http.request import HttpRequest
    from kbroker.topics.registry import Topic

_NAMED = {"earliest": EARLIEST, "latest": LATEST, "maxTimestamp": MAX_TIMESTAMP}


async def list_all(request: HttpRequest) -> Response:
    name, after, limit = request.path["topic"], request.query("after", int, -1), limit_of(request)
    first = max(after + 1, 0)
    found = await in_turns(
        request, describe_partitions(request.resources, name, client_of(request), first, limit)
    )
    topic = request.resources.topic(name, AclOperation.DESCRIBE)
    entries = await in_turns(request, each(found, _described))
    last = found[-1].partition if found else topic.partitions
    return json_answer(
        {
            "topic": topic.name,
            "topicId": topic_id_text(topic.topic_id),
            "partitions": entries,
            "next": last if last + 1 < topic.partitions else None,
        }
    )


async def grow(request: HttpRequest) -> Response:
    resources, name = request.resources, request.path["topic"]
    count = Members(await request.json()).only("partitions").integer("partitions")
    topic: Topic = await settled(
        audited(
            resources, "TOPIC", name, lambda: add_partitions(resources, name, count), {"partitions": count}
        )
    )
    return json_answer(described(resources, topic))


async def describe(request: HttpRequest) -> Response:
    name, partition = _place(request)
    resources = request.resources
    found = await settled(describe_partition(resources, name, partition, client_of(request)))
    times = await settled(record_times(resources, name, partition))
    return json_answer(
        {
            "topic": name,
            **_described(found),
            "firstTimestamp": times.first,
            "largestTimestamp": times.largest,
        }
    )


async def leader(request: HttpRequest) -> Response:
    name, partition = _place(request)
    resources, client = request.resources, client_of(request)
    topic = topic_with_partition(resources, name, partition)
    replicas = replicas_of(resources, topic, partition, client)
    return json_answer(
        {
            "topic": name,
            "partition": partition,
            "leader": node_document(describe_node(resources, replicas.leader, client)),
            "leaderEpoch": replicas.leader_epoch,
        }
    )


async def offset(request: HttpRequest) -> Response:
    name, partition = _place(request)
    at = request.query("at", str, "latest")
    committed = reads_committed(request)
    timestamp = _NAMED[at] if at in _NAMED else timestamp_of(at, "at", *_NAMED)
    found = await settled(offset_at(request.resources, name, partition, timestamp, committed=committed))
    return json_answer(
        {
            "topic": name,
            "partition": partition,
            "offset": None if found is None else found.offset,
            "timestamp": None if found is None or found.timestamp < 0 else found.timestamp,
        }
    )


async def trim(request: HttpRequest) -> Response:
    name, partition = _place(request)
    resources = request.resources
    text = request.query("before", str)
    if text is None:
        raise Problem(
            400, "before is missing: the offset of the first record to keep, or latest to keep none."
        )
    before = HIGH_WATERMARK if text == "latest" else _offset(text)
    topic_with_partition(resources, name, partition, AclOperation.DELETE)
    start = await settled(
        audited(
            resources,
            "TOPIC",
            name,
            lambda: delete_records(resources, name, partition, before),
            {"partition": partition, "before": before},
        )
    )
    return json_answer({"topic": name, "partition": partition, "logStartOffset": start})


def _place(request: HttpRequest) -> tuple[str, int]:
    return request.path["topic"], request.path_int("partition")


def _described(found: PartitionDescription) -> dict[str, Any]:
    replicas, offsets = found.replicas, found.offsets
    return {
        "partition": found.partition,
        "leader": replicas.leader,
        "leaderEpoch": replicas.leader_epoch,
        "replicas": list(replicas.replicas),
        "inSyncReplicas": list(replicas.in_sync),
        "logStartOffset": offsets.log_start_offset,
        "lastStableOffset": offsets.last_stable_offset,
        "highWatermark": offsets.high_watermark,
        "logEndOffset": offsets.log_end_offset,
        "offsets": offsets.log_end_offset - offsets.log_start_offset,
        "sizeBytes": offsets.size_bytes,
    }


def _offset(text: str) -> int:
    if not text.isascii() or not text.isdecimal() or len(text) > 18:
        raise Problem(400, f"before must be an offset from 0 on, or latest, not {text[:50]!r}.")
    return int(text)


_IDS: Schema = {"type": "array", "items": INTEGER}
_MEMBERS: dict[str, Schema] = {
    "partition": INTEGER,
    "leader": INTEGER,
    "leaderEpoch": INTEGER,
    "replicas": _IDS,
    "inSyncReplicas": _IDS,
    "logStartOffset": INTEGER,
    "lastStableOffset": INTEGER,
    "highWatermark": INTEGER,
    "logEndOffset": INTEGER,
    "offsets": {
        "type": "integer",
        "description": "Between log start and end: records, and what compaction and transactions left out.",
    },
    "sizeBytes": {"type": ["integer", "null"], "description": "Null for who may not describe the cluster."},
}
_PARTITION: Schema = {"type": "object", "required": [*_MEMBERS], "properties": _MEMBERS}
_TIME: Schema = {"type": ["integer", "null"], "description": "Milliseconds since 1970."}
_METRICS: dict[str, Schema] = {
    "topic": STRING,
    **_MEMBERS,
    "firstTimestamp": _TIME,
    "largestTimestamp": _TIME,
}
_TAG = "topics"


def _object(**members: Schema) -> Schema:
    return {"type": "object", "required": [*members], "properties": members}


ENDPOINTS = (
    Endpoint(
        "GET",
        "/topics/{topic}/partitions",
        list_all,
        "List the partitions of a topic with their leaders and offsets, page by page.",
        (Parameter("after", "Only partitions behind this one: `next` of the page before.", INTEGER), LIMIT),
        answers={
            200: json_answer_of(
                "One page.",
                _object(
                    topic=STRING,
                    topicId=STRING,
                    partitions={"type": "array", "items": _PARTITION},
                    next=NEXT,
                ),
            )
        },
        tag=_TAG,
    ),
    Endpoint(
        "POST",
        "/topics/{topic}/partitions",
        grow,
        "Give a topic more partitions.",
        body=json_body(
            {
                "type": "object",
                "required": ["partitions"],
                "additionalProperties": False,
                "properties": {
                    "partitions": {"type": "integer", "description": "How many it has in all, afterwards."}
                },
            }
        ),
        answers={200: json_answer_of("The topic as it is now.", {"type": "object"})},
        tag=_TAG,
    ),
    Endpoint(
        "GET",
        "/topics/{topic}/partitions/{partition}",
        describe,
        "Describe a partition: leader, offsets, size, times of its records.",
        answers={200: json_answer_of("The partition.", _object(**_METRICS))},
        tag=_TAG,
    ),
    Endpoint(
        "GET",
        "/topics/{topic}/partitions/{partition}/leader",
        leader,
        "Say which broker leads a partition.",
        answers={
            200: json_answer_of(
                "The leader.",
                _object(topic=STRING, partition=INTEGER, leader={"type": "object"}, leaderEpoch=INTEGER),
            )
        },
        tag=_TAG,
    ),
    Endpoint(
        "GET",
        "/topics/{topic}/partitions/{partition}/offset",
        offset,
        "Find the offset that belongs to a time, or the earliest or latest one.",
        (
            Parameter("at", "earliest, latest, maxTimestamp, milliseconds since 1970, or an ISO 8601 time."),
            ISOLATION_PARAMETER,
        ),
        answers={
            200: json_answer_of(
                "The offset; null: there is no record of that time or later.",
                _object(
                    topic=STRING, partition=INTEGER, offset={"type": ["integer", "null"]}, timestamp=_TIME
                ),
            )
        },
        tag=_TAG,
    ),
    Endpoint(
        "DELETE",
        "/topics/{topic}/partitions/{partition}/records",
        trim,
        "Delete the records before an offset.",
        (Parameter("before", "The offset of the first record to keep, or latest.", required=True),),
        answers={
            200: json_answer_of(
                "They are gone.", _object(topic=STRING, partition=INTEGER, logStartOffset=INTEGER)
            )
        },
        tag=_TAG,
    ),
)
