"""Partitions of a topic, their replicas, offsets and reassignments, of which there are none on one broker."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kbroker.http.answers import json_answer
from kbroker.http.cluster import client_of
from kbroker.http.endpoint import BOOLEAN, INTEGER, STRING, Endpoint, Parameter
from kbroker.http.rest_proxy.errors import PARTITION_NOT_FOUND, RestError
from kbroker.http.rest_proxy.v3.documents import (
    LINK,
    Document,
    Place,
    list_answer,
    list_schema,
    resource_schema,
)
from kbroker.http.rest_proxy.v3.endpoints import endpoint
from kbroker.network.awaiting import settled
from kbroker.operations.partitions import describe_partition, replicas_of
from kbroker.security.acls import AclOperation

if TYPE_CHECKING:
    from kbroker.http.answers import Response
    from kbroker.http.request import HttpRequest
    from kbroker.topics.registry import Topic

_EARLIEST_AND_LATEST = "earliest_and_latest"


async def list_partitions(request: HttpRequest) -> Response:
    place, topic = Place(request), topic_of(request)
    return list_answer(
        "KafkaPartitionList",
        place.url("topics", topic.name, "partitions"),
        range(topic.partitions),
        lambda partition: _partition(request, place, topic, partition),
    )


async def get_partition(request: HttpRequest) -> Response:
    place, (topic, partition) = Place(request), partition_of(request)
    return json_answer(_partition(request, place, topic, partition))


async def get_offsets(request: HttpRequest) -> Response:
    place, (topic, partition) = Place(request), partition_of(request)
    kind = request.query("offset_type", str, _EARLIEST_AND_LATEST)
    if kind != _EARLIEST_AND_LATEST:
        raise RestError(400, f"offset_type must be {_EARLIEST_AND_LATEST}, not {kind[:50]!r}.")
    found = await settled(describe_partition(request.resources, topic.name, partition, client_of(request)))
    return json_answer(
        place.resource(
            "KafkaPartitionWithOffsets",
            ("topics", topic.name, "partitions", partition, "offset"),
            f"topic={topic.name}/partition={partition}/offset_type={kind}",
            {
                "topic_name": topic.name,
                "partition_id": partition,
                "earliest_offset": found.offsets.log_start_offset,
                "latest_offset": found.offsets.high_watermark,
            },
        )
    )


async def list_replicas(request: HttpRequest) -> Response:
    place, (topic, partition) = Place(request), partition_of(request)
    return list_answer(
        "KafkaReplicaList",
        place.url("topics", topic.name, "partitions", partition, "replicas"),
        request.broker.cluster.replicas(topic, partition),
        lambda node_id: replica_document(request, place, topic, partition, node_id),
    )


async def get_replica(request: HttpRequest) -> Response:
    place, (topic, partition) = Place(request), partition_of(request)
    node_id = request.path_int("broker_id")
    if node_id not in request.broker.cluster.replicas(topic, partition):
        raise RestError(404, f"Broker {node_id} has no replica of this partition.")
    return json_answer(replica_document(request, place, topic, partition, node_id))


async def list_reassignments(request: HttpRequest) -> Response:
    """Of all partitions, or of those of a topic."""
    place = Place(request)
    request.resources.check_cluster(AclOperation.DESCRIBE)
    name = topic_of(request).name if "topic_name" in request.path else "-"
    url = place.url("topics", name, "partitions", "-", "reassignment")
    nothing: list[Document] = []
    return list_answer("KafkaReassignmentList", url, nothing, lambda each: each)


async def get_reassignment(request: HttpRequest) -> Response:
    Place(request)
    request.resources.check_cluster(AclOperation.DESCRIBE)
    partition_of(request)
    raise RestError(404, "The partition is not being reassigned.")


def topic_of(request: HttpRequest, operation: AclOperation = AclOperation.DESCRIBE) -> Topic:
    """The one that the path names."""
    return request.resources.topic(request.path["topic_name"], operation)


def partition_of(request: HttpRequest) -> tuple[Topic, int]:
    topic, partition = topic_of(request), request.path_int("partition_id")
    if partition >= topic.partitions:
        raise RestError(
            PARTITION_NOT_FOUND, f"There is no partition {partition}: the topic has {topic.partitions}."
        )
    return topic, partition


def replica_document(
    request: HttpRequest, place: Place, topic: Topic, partition: int, node_id: int
) -> Document:
    replicas = replicas_of(request.resources, topic, partition, client_of(request))
    return place.resource(
        "KafkaReplica",
        ("topics", topic.name, "partitions", partition, "replicas", node_id),
        f"topic={topic.name}/partition={partition}/replica={node_id}",
        {
            "topic_name": topic.name,
            "partition_id": partition,
            "broker_id": node_id,
            "is_leader": replicas.leader == node_id,
            "is_in_sync": node_id in replicas.in_sync,
            "broker": place.link("brokers", node_id),
        },
    )


def _partition(request: HttpRequest, place: Place, topic: Topic, partition: int) -> Document:
    path = ("topics", topic.name, "partitions", partition)
    leader = request.broker.cluster.leader(topic, partition, client_of(request))
    return place.resource(
        "KafkaPartition",
        path,
        f"topic={topic.name}/partition={partition}",
        {
            "topic_name": topic.name,
            "partition_id": partition,
            "leader": place.link(*path, "replicas", leader),
            "replicas": place.link(*path, "replicas"),
            "reassignment": place.link(*path, "reassignment"),
        },
    )


_OF_PARTITION = {"topic_name": STRING, "partition_id": INTEGER}
_PARTITION = resource_schema("KafkaPartition", **_OF_PARTITION, leader=LINK, replicas=LINK, reassignment=LINK)
REPLICA = resource_schema(
    "KafkaReplica",
    **_OF_PARTITION,
    broker_id=INTEGER,
    is_leader=BOOLEAN,
    is_in_sync=BOOLEAN,
    broker=LINK,
)
_OFFSETS = resource_schema(
    "KafkaPartitionWithOffsets", **_OF_PARTITION, earliest_offset=INTEGER, latest_offset=INTEGER
)
_REASSIGNMENT = resource_schema("KafkaReassignment", **_OF_PARTITION)
_ALL, _ONE = "/topics/{topic_name}/partitions", "/topics/{topic_name}/partitions/{partition_id}"

ENDPOINTS: tuple[Endpoint, ...] = (
    endpoint(
        "GET",
        _ALL,
        list_partitions,
        "List the partitions of a topic.",
        answers={200: list_schema("KafkaPartitionList", _PARTITION)},
    ),
    endpoint("GET", _ONE, get_partition, "Get a partition.", answers={200: _PARTITION}),
    endpoint(
        "GET",
        f"{_ONE}/offset",
        get_offsets,
        "Get the earliest and latest offset of a partition.",
        parameters=(Parameter("offset_type", f"{_EARLIEST_AND_LATEST}, or nothing."),),
        answers={200: _OFFSETS},
    ),
    endpoint(
        "GET",
        f"{_ONE}/replicas",
        list_replicas,
        "List the replicas of a partition.",
        answers={200: list_schema("KafkaReplicaList", REPLICA)},
    ),
    endpoint(
        "GET",
        f"{_ONE}/replicas/{{broker_id}}",
        get_replica,
        "Get a replica of a partition.",
        answers={200: REPLICA},
    ),
    endpoint(
        "GET",
        "/topics/-/partitions/-/reassignment",
        list_reassignments,
        "List the partitions that move.",
        answers={200: list_schema("KafkaReassignmentList", _REASSIGNMENT)},
    ),
    endpoint(
        "GET",
        f"{_ALL}/-/reassignment",
        list_reassignments,
        "List the partitions of a topic that move.",
        answers={200: list_schema("KafkaReassignmentList", _REASSIGNMENT)},
    ),
    endpoint(
        "GET",
        f"{_ONE}/reassignment",
        get_reassignment,
        "Get where a partition moves to.",
        answers={200: _REASSIGNMENT},
    ),
)
