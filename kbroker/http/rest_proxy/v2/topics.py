"""Topics, their partitions and offsets, and brokers, as version 2 tells of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kbroker.config.resources import ResourceType
from kbroker.http.cluster import client_of
from kbroker.http.endpoint import BOOLEAN, INTEGER, STRING, Endpoint, Schema
from kbroker.http.rest_proxy.errors import PARTITION_NOT_FOUND, TOPIC_NOT_FOUND, RestError
from kbroker.http.rest_proxy.v2.endpoints import endpoint
from kbroker.http.rest_proxy.v2.media import ANY, answer
from kbroker.http.turns import in_turns
from kbroker.network.awaiting import settled
from kbroker.operations.cluster import describe_cluster
from kbroker.operations.configs import describe_configs
from kbroker.operations.partitions import describe_partition, replicas_of
from kbroker.operations.topic_descriptions import EVERY_TOPIC, list_topics
from kbroker.protocol.errors import ApiError, ErrorCode
from kbroker.security.acls import AclOperation

if TYPE_CHECKING:
    from kbroker.http.answers import Response
    from kbroker.http.request import HttpRequest
    from kbroker.requests.long_requests import Steps
    from kbroker.topics.registry import Topic

_MISSING = (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.INVALID_TOPIC_EXCEPTION)


async def list_names(request: HttpRequest) -> Response:
    page = await in_turns(request, list_topics(request.resources, limit=EVERY_TOPIC))
    return answer(request, [topic.name for topic in page.topics])


async def get_topic(request: HttpRequest) -> Response:
    topic = _topic(request)
    configs = describe_configs(request.resources, ResourceType.TOPIC, topic.name)
    return answer(
        request,
        {
            "name": topic.name,
            "configs": {each.name: each.value for each in configs},
            "partitions": await in_turns(request, _partitions(request, topic)),
        },
    )


async def list_partitions(request: HttpRequest) -> Response:
    return answer(request, await in_turns(request, _partitions(request, _topic(request))))


async def get_partition(request: HttpRequest) -> Response:
    topic, partition = _partition_of(request)
    return answer(request, _partition(request, topic, partition))


async def get_offsets(request: HttpRequest) -> Response:
    topic, partition = _partition_of(request)
    found = await settled(describe_partition(request.resources, topic.name, partition, client_of(request)))
    return answer(
        request,
        {
            "beginning_offset": found.offsets.log_start_offset,
            "end_offset": found.offsets.high_watermark,
        },
    )


async def list_brokers(request: HttpRequest) -> Response:
    cluster = describe_cluster(request.resources, client_of(request))
    return answer(request, {"brokers": [node.node_id for node in cluster.nodes]})


def _topic(request: HttpRequest) -> Topic:
    try:
        return request.resources.topic(request.path["topic"], AclOperation.DESCRIBE)
    except ApiError as error:
        if error.code in _MISSING:
            raise RestError(TOPIC_NOT_FOUND, "Topic not found.") from None
        raise


def _partition_of(request: HttpRequest) -> tuple[Topic, int]:
    topic, partition = _topic(request), request.path_int("partition")
    if partition >= topic.partitions:
        raise RestError(PARTITION_NOT_FOUND, "Partition not found.")
    return topic, partition


def _partitions(request: HttpRequest, topic: Topic) -> Steps[list[dict[str, Any]]]:
    found = []
    for partition in range(topic.partitions):
        found.append(_partition(request, topic, partition))
        yield None
    return found


def _partition(request: HttpRequest, topic: Topic, partition: int) -> dict[str, Any]:
    leader, _, replicas, in_sync = replicas_of(request.resources, topic, partition, client_of(request))
    return {
        "partition": partition,
        "leader": leader,
        "replicas": [
            {"broker": node_id, "leader": node_id == leader, "in_sync": node_id in in_sync}
            for node_id in replicas
        ],
    }


_PARTITION: Schema = {
    "type": "object",
    "required": ["partition", "leader", "replicas"],
    "properties": {
        "partition": INTEGER,
        "leader": INTEGER,
        "replicas": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["broker", "leader", "in_sync"],
                "properties": {"broker": INTEGER, "leader": BOOLEAN, "in_sync": BOOLEAN},
            },
        },
    },
}
_PARTITIONS: Schema = {"type": "array", "items": _PARTITION}
_TOPIC: Schema = {
    "type": "object",
    "required": ["name", "configs", "partitions"],
    "properties": {
        "name": STRING,
        "configs": {"type": "object", "additionalProperties": {"type": ["string", "null"]}},
        "partitions": _PARTITIONS,
    },
}
_OFFSETS: Schema = {
    "type": "object",
    "required": ["beginning_offset", "end_offset"],
    "properties": {"beginning_offset": INTEGER, "end_offset": INTEGER},
}
_BROKERS: Schema = {
    "type": "object",
    "required": ["brokers"],
    "properties": {"brokers": {"type": "array", "items": INTEGER}},
}
_ONE = "/topics/{topic}/partitions/{partition}"

ENDPOINTS: tuple[Endpoint, ...] = (
    endpoint(
        "GET",
        "/topics",
        list_names,
        "The names of all topics.",
        answers={200: {"type": "array", "items": STRING}},
        media=ANY,
    ),
    endpoint(
        "GET",
        "/topics/{topic}",
        get_topic,
        "A topic, its configs and its partitions.",
        answers={200: _TOPIC},
        media=ANY,
    ),
    endpoint(
        "GET",
        "/topics/{topic}/partitions",
        list_partitions,
        "The partitions of a topic.",
        answers={200: _PARTITIONS},
        media=ANY,
    ),
    endpoint("GET", _ONE, get_partition, "One partition.", answers={200: _PARTITION}, media=ANY),
    endpoint(
        "GET",
        f"{_ONE}/offsets",
        get_offsets,
        "Where a partition begins and ends.",
        answers={200: _OFFSETS},
    ),
    endpoint("GET", "/brokers", list_brokers, "The ids of all brokers.", answers={200: _BROKERS}, media=ANY),
)
