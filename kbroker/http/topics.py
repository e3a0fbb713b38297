"""Topics: created, listed, described, altered and deleted."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from kbroker.config.resources import ResourceType
from kbroker.http.answers import json_answer
from kbroker.http.configs import altered, config_changes
from kbroker.http.endpoint import (
    BOOLEAN,
    FLAG,
    INTEGER,
    STRING,
    Endpoint,
    Parameter,
    Schema,
    json_answer_of,
    json_body,
)
from kbroker.http.members import Members, config_text
from kbroker.http.paging import LIMIT, NEXT, limit_of
from kbroker.http.turns import in_turns
from kbroker.network.awaiting import settled
from kbroker.operations.auditing import audited
from kbroker.operations.topic_descriptions import is_internal, list_topics, replication_factor
from kbroker.operations.topics import create_topic, delete_topic, validate_topic
from kbroker.requests.admin_changes import shown_config
from kbroker.requests.long_requests import each
from kbroker.security.acls import AclOperation
from kbroker.topics.creation import NewTopic, count_problem

if TYPE_CHECKING:
    from kbroker.http.answers import Response
    from kbroker.http.request import HttpRequest
    from kbroker.requests.resources import Resources
    from kbroker.topics.registry import Topic

_DEFAULT = -1


async def list_all(request: HttpRequest) -> Response:
    resources = request.resources
    prefix, after = request.query("prefix", str, ""), request.query("after", str, "")
    page = await in_turns(
        request, list_topics(resources, limit=limit_of(request), prefix=prefix, after=after)
    )
    entries = await in_turns(request, each(page.topics, lambda topic: _listed(resources, topic)))
    return json_answer(
        {
            "topics": entries,
            "next": page.topics[-1].name if page.more else None,
        }
    )


async def create(request: HttpRequest) -> Response:
    resources = request.resources
    new = _new_topic(Members(await request.json()).only("name", "partitions", "replicationFactor", "configs"))
    too_many = count_problem(request.broker, [new.num_partitions])
    if too_many is not None:
        raise too_many
    if request.query("validateOnly", bool, default=False):
        return json_answer(described(resources, validate_topic(resources, new)))
    configs = {name: shown_config(ResourceType.TOPIC, name, text) for name, text in new.configs.items()}
    details = {"partitions": new.num_partitions, **({"configs": configs} if configs else {})}
    topic: Topic = await settled(
        audited(resources, "TOPIC", new.name, lambda: create_topic(resources, new), details)
    )
    path = str(request.scope["path"]).rstrip("/")
    return json_answer(described(resources, topic), 201, {"location": f"{path}/{quote(topic.name, safe='')}"})


async def describe(request: HttpRequest) -> Response:
    return json_answer(described(request.resources, _topic(request)))


async def alter(request: HttpRequest) -> Response:
    resources = request.resources
    topic = _topic(request)
    changes = config_changes(Members(await request.json()).only("configs").get("configs"))
    await altered(request, ResourceType.TOPIC, topic.name, changes)
    return json_answer(described(resources, resources.topic(topic.name, AclOperation.DESCRIBE)))


async def delete(request: HttpRequest) -> Response:
    resources, name = request.resources, request.path["topic"]

    def change() -> Any:
        return delete_topic(resources, resources.topic_to_delete(name))

    topic: Topic = await settled(audited(resources, "TOPIC", name, change))
    return json_answer({"name": topic.name, "topicId": topic_id_text(topic.topic_id)})


def topic_id_text(topic_id: bytes) -> str:
    """As Kafka's tools print it."""
    return base64.urlsafe_b64encode(topic_id)[:22].decode()


def described(resources: Resources, topic: Topic) -> dict[str, Any]:
    """With the configs that are not the broker's defaults, for who may know them."""
    configs: dict[str, str | None] | None = None
    if resources.may_topic(AclOperation.DESCRIBE_CONFIGS, topic.name):
        configs = dict(topic.configs)
    return {**_listed(resources, topic), "configs": configs}


def _listed(resources: Resources, topic: Topic) -> dict[str, Any]:
    return {
        "name": topic.name,
        "topicId": topic_id_text(topic.topic_id),
        "partitions": topic.partitions,
        "replicationFactor": replication_factor(resources, topic),
        "internal": is_internal(topic),
    }


def _topic(request: HttpRequest) -> Topic:
    return request.resources.topic(request.path["topic"], AclOperation.DESCRIBE)


def _new_topic(members: Members) -> NewTopic:
    configs = {name: config_text(name, value) for name, value in members.mapping("configs").items()}
    partitions = members.optional_integer("partitions")
    factor = members.optional_integer("replicationFactor")
    return NewTopic(
        members.text("name"),
        _DEFAULT if partitions is None else partitions,
        _DEFAULT if factor is None else factor,
        configs,
    )


CONFIGS: Schema = {
    "type": "object",
    "additionalProperties": {"type": ["string", "number", "boolean", "array", "null"], "items": STRING},
}
_TOPIC_MEMBERS: dict[str, Schema] = {
    "name": STRING,
    "topicId": STRING,
    "partitions": INTEGER,
    "replicationFactor": INTEGER,
    "internal": BOOLEAN,
}
_LISTED: Schema = {"type": "object", "required": [*_TOPIC_MEMBERS], "properties": _TOPIC_MEMBERS}
_DESCRIBED: Schema = {
    "type": "object",
    "required": [*_TOPIC_MEMBERS, "configs"],
    "properties": {
        **_TOPIC_MEMBERS,
        "configs": {
            "type": ["object", "null"],
            "description": "Those set for this topic; null for who may not know them.",
            "additionalProperties": STRING,
        },
    },
}
_NEW: Schema = {
    "type": "object",
    "required": ["name"],
    "additionalProperties": False,
    "properties": {
        "name": {"type": "string", "minLength": 1, "maxLength": 249},
        "partitions": {
            "type": ["integer", "null"],
            "minimum": 1,
            "description": "num.partitions unless said.",
        },
        "replicationFactor": {"type": ["integer", "null"], "minimum": 1},
        "configs": CONFIGS,
    },
}
_TAG = "topics"

ENDPOINTS = (
    Endpoint(
        "GET",
        "/topics",
        list_all,
        "List topics by name, page by page.",
        (
            Parameter("prefix", "Only topics whose names begin with this."),
            Parameter("after", "Only topics behind this name: `next` of the page before."),
            LIMIT,
        ),
        answers={
            200: json_answer_of(
                "One page.",
                {
                    "type": "object",
                    "required": ["topics", "next"],
                    "properties": {"topics": {"type": "array", "items": _LISTED}, "next": NEXT},
                },
            )
        },
        tag=_TAG,
    ),
    Endpoint(
        "POST",
        "/topics",
        create,
        "Create a topic.",
        (Parameter("validateOnly", "Only say whether it could be created.", FLAG),),
        json_body(_NEW),
        {
            200: json_answer_of("It could be created: validateOnly.", _DESCRIBED),
            201: json_answer_of("It is there, and durable.", _DESCRIBED),
        },
        tag=_TAG,
    ),
    Endpoint(
        "GET",
        "/topics/{topic}",
        describe,
        "Describe a topic.",
        answers={200: json_answer_of("The topic.", _DESCRIBED)},
        tag=_TAG,
    ),
    Endpoint(
        "PATCH",
        "/topics/{topic}",
        alter,
        "Alter configs of a topic; null takes one back to its default.",
        (Parameter("validateOnly", "Only say whether they could be altered.", FLAG),),
        json_body(
            {
                "type": "object",
                "required": ["configs"],
                "additionalProperties": False,
                "properties": {"configs": CONFIGS},
            }
        ),
        {200: json_answer_of("The topic as it is now.", _DESCRIBED)},
        tag=_TAG,
    ),
    Endpoint(
        "DELETE",
        "/topics/{topic}",
        delete,
        "Delete a topic and its records.",
        answers={
            200: json_answer_of(
                "It is gone.",
                {
                    "type": "object",
                    "required": ["name", "topicId"],
                    "properties": {"name": STRING, "topicId": STRING},
                },
            )
        },
        tag=_TAG,
    ),
)
