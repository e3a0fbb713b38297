"""Topics: listed, created, given more partitions, deleted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kbroker.config.resources import ResourceType
from kbroker.http.answers import json_answer, no_content
from kbroker.http.endpoint import BOOLEAN, FLAG, INTEGER, STRING, Endpoint, Parameter, Schema
from kbroker.http.members import Members, config_text
from kbroker.http.rest_proxy.errors import RestError
from kbroker.http.rest_proxy.v3.documents import (
    LINK,
    Document,
    Place,
    list_answer,
    list_schema,
    resource_schema,
)
from kbroker.http.rest_proxy.v3.endpoints import endpoint
from kbroker.http.rest_proxy.v3.partitions import topic_of
from kbroker.http.turns import in_turns
from kbroker.network.awaiting import settled
from kbroker.operations.auditing import audited
from kbroker.operations.topic_descriptions import EVERY_TOPIC, is_internal, list_topics, replication_factor
from kbroker.operations.topics import add_partitions, create_topic, delete_topic, validate_topic
from kbroker.requests.admin_changes import shown_config
from kbroker.security.acls import OPERATIONS_OF, AclResourceType
from kbroker.topics.creation import NewTopic, count_problem

if TYPE_CHECKING:
    from kbroker.http.answers import Response
    from kbroker.http.request import HttpRequest
    from kbroker.pending import Pending
    from kbroker.topics.registry import Topic

_DEFAULT = -1


async def list_all(request: HttpRequest) -> Response:
    place = Place(request)
    shows_operations = request.query("includeAuthorizedOperations", bool, default=False) or _asks(request)
    page = await in_turns(request, list_topics(request.resources, limit=EVERY_TOPIC))
    return list_answer(
        "KafkaTopicList",
        place.url("topics"),
        page.topics,
        lambda topic: topic_document(request, place, topic, shows_operations=shows_operations),
    )


async def get(request: HttpRequest) -> Response:
    return json_answer(
        topic_document(request, Place(request), topic_of(request), shows_operations=_asks(request))
    )


async def create(request: HttpRequest) -> Response:
    place, resources = Place(request), request.resources
    members = Members(await request.json())
    new = _new_topic(members)
    too_many = count_problem(request.broker, [len(new.assignments) or new.num_partitions])
    if too_many is not None:
        raise too_many
    location = {"location": place.url("topics", new.name)}
    if members.boolean("validate_only"):
        topic = validate_topic(resources, new)
        return json_answer(topic_document(request, place, topic), 200, location)
    configs = {name: shown_config(ResourceType.TOPIC, name, text) for name, text in new.configs.items()}
    details = {"partitions": new.num_partitions, **({"configs": configs} if configs else {})}
    topic = await settled(
        audited(resources, "TOPIC", new.name, lambda: create_topic(resources, new), details)
    )
    return json_answer(topic_document(request, place, topic), 201, location)


async def grow(request: HttpRequest) -> Response:
    place, resources, name = Place(request), request.resources, request.path["topic_name"]
    count = Members(await request.json()).integer("partitions_count")
    topic = await settled(
        audited(
            resources, "TOPIC", name, lambda: add_partitions(resources, name, count), {"partitions": count}
        )
    )
    return json_answer(topic_document(request, place, topic))


async def delete(request: HttpRequest) -> Response:
    Place(request)
    resources, name = request.resources, request.path["topic_name"]

    def change() -> Pending[Topic]:
        return delete_topic(resources, resources.topic_to_delete(name))

    await settled(audited(resources, "TOPIC", name, change))
    return no_content()


def topic_document(
    request: HttpRequest, place: Place, topic: Topic, *, shows_operations: bool = False
) -> Document:
    path = ("topics", topic.name)
    members: Document = {
        "topic_name": topic.name,
        "is_internal": is_internal(topic),
        "replication_factor": replication_factor(request.resources, topic),
        "partitions_count": topic.partitions,
        "partitions": place.link(*path, "partitions"),
        "configs": place.link(*path, "configs"),
        "partition_reassignments": place.link(*path, "partitions", "-", "reassignment"),
    }
    if shows_operations:
        members["authorized_operations"] = _operations(request, topic)
    return place.resource("KafkaTopic", path, f"topic={topic.name}", members)


def _asks(request: HttpRequest) -> bool:
    return request.query("include_authorized_operations", bool, default=False)


def _operations(request: HttpRequest, topic: Topic) -> list[str]:
    allowed = request.resources.authorized_operations(AclResourceType.TOPIC, topic.name)
    return [each.name for each in OPERATIONS_OF[AclResourceType.TOPIC] if allowed >> each & 1]


def _new_topic(members: Members) -> NewTopic:
    partitions = members.optional_integer("partitions_count")
    factor = members.optional_integer("replication_factor")
    assignments = _assignments(members)
    if assignments:  # they count more, as in the proxy
        partitions = factor = None
    return NewTopic(
        members.text("topic_name"),
        _DEFAULT if partitions is None else partitions,
        _DEFAULT if factor is None else factor,
        _configs(members),
        assignments,
    )


def _configs(members: Members) -> dict[str, str | None]:
    configs: dict[str, str | None] = {}
    for each in members.items("configs"):
        config = Members(each, "an entry of configs")
        name, value = config.text("name"), config.get("value")
        configs[name] = None if value is None else config_text(name, value)
    return configs


def _assignments(members: Members) -> list[tuple[int, list[int]]]:
    found: list[tuple[int, list[int]]] = []
    for partition, replicas in members.mapping("replicas_assignments").items():
        if (
            not partition.isascii()
            or not partition.isdecimal()
            or len(partition) > 9
            or not _is_ids(replicas)
        ):
            raise RestError(400, "replicas_assignments must name partitions, each with a list of broker ids.")
        found.append((int(partition), replicas))
    return found


def _is_ids(value: Any) -> bool:
    return isinstance(value, list) and all(
        isinstance(each, int) and not isinstance(each, bool) and 0 <= each < 1 << 31 for each in value
    )


_TOPIC = resource_schema(
    "KafkaTopic",
    topic_name=STRING,
    is_internal=BOOLEAN,
    replication_factor=INTEGER,
    partitions_count=INTEGER,
    partitions=LINK,
    configs=LINK,
    partition_reassignments=LINK,
)
_NEW: Schema = {
    "type": "object",
    "required": ["topic_name"],
    "properties": {
        "topic_name": STRING,
        "partitions_count": INTEGER,
        "replication_factor": INTEGER,
        "replicas_assignments": {
            "type": "object",
            "additionalProperties": {"type": "array", "items": INTEGER},
        },
        "configs": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["name"],
                "properties": {"name": STRING, "value": {"type": ["string", "null"]}},
            },
        },
        "validate_only": {"type": ["boolean", "null"]},
    },
}
_OPERATIONS = Parameter("include_authorized_operations", "Say what the caller may do to it.", FLAG)

ENDPOINTS: tuple[Endpoint, ...] = (
    endpoint(
        "GET",
        "/topics",
        list_all,
        "List the topics.",
        parameters=(_OPERATIONS,),
        answers={200: list_schema("KafkaTopicList", _TOPIC)},
    ),
    endpoint(
        "POST",
        "/topics",
        create,
        "Create a topic, or see whether it could be.",
        body=_NEW,
        answers={200: _TOPIC, 201: _TOPIC},
    ),
    endpoint(
        "GET",
        "/topics/{topic_name}",
        get,
        "Get a topic.",
        parameters=(_OPERATIONS,),
        answers={200: _TOPIC},
    ),
    endpoint(
        "PATCH",
        "/topics/{topic_name}",
        grow,
        "Give a topic more partitions.",
        body={
            "type": "object",
            "required": ["partitions_count"],
            "properties": {"partitions_count": INTEGER},
        },
        answers={200: _TOPIC},
    ),
    endpoint("DELETE", "/topics/{topic_name}", delete, "Delete a topic.", answers={204: None}),
)
