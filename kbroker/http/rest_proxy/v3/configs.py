"""Configs of topics, of brokers and of the whole cluster."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from kbroker.config.description import Described
from kbroker.config.resources import Change, Operation, ResourceType
from kbroker.config.settings import ConfigSource
from kbroker.http.answers import json_answer, no_content
from kbroker.http.cluster import client_of
from kbroker.http.configs import alter_and_tell
from kbroker.http.endpoint import BOOLEAN, INTEGER, STRING, Endpoint, Schema
from kbroker.http.members import Members, config_text
from kbroker.http.rest_proxy.errors import RestError, rest_error
from kbroker.http.rest_proxy.v3.clusters import broker_of
from kbroker.http.rest_proxy.v3.documents import Document, Place, list_answer, list_schema, resource_schema
from kbroker.http.rest_proxy.v3.endpoints import endpoint
from kbroker.http.turns import in_turns
from kbroker.operations.cluster import describe_cluster
from kbroker.operations.configs import describe_configs
from kbroker.operations.topic_descriptions import EVERY_TOPIC, list_topics
from kbroker.protocol.errors import ApiError

if TYPE_CHECKING:
    from kbroker.http.answers import Response
    from kbroker.http.request import HttpRequest

_MOST_TOPICS = 1000  # altered by one request


class _Owner:
    """What configs belong to: where they are, how their kind is called, which members say whose they are."""

    __slots__ = ("crn", "kind", "members", "name", "path", "type")

    def __init__(
        self,
        kind: str,
        type_: ResourceType,
        name: str,
        path: tuple[str | int, ...],
        crn: str,
        members: Document,
    ) -> None:
        self.kind = kind
        self.type = type_
        self.name = name
        self.path = path
        self.crn = crn
        self.members = members

    def document(self, place: Place, each: Described) -> Document:
        return place.resource(
            self.kind,
            (*self.path, each.name),
            self.crn + each.name,
            {
                **self.members,
                "name": each.name,
                "value": each.value,
                "is_default": each.source is ConfigSource.DEFAULT_CONFIG,
                "is_read_only": each.read_only,
                "is_sensitive": each.is_sensitive,
                "source": _source(each.source),
                "synonyms": [
                    {"name": synonym.name, "value": synonym.value, "source": _source(synonym.source)}
                    for synonym in each.synonyms
                ],
            },
        )


def _of_topic(name: str) -> _Owner:
    return _Owner(
        "KafkaTopicConfig",
        ResourceType.TOPIC,
        name,
        ("topics", name, "configs"),
        f"topic={name}/config=",
        {"topic_name": name},
    )


def _of_broker(node_id: int) -> _Owner:
    return _Owner(
        "KafkaBrokerConfig",
        ResourceType.BROKER,
        str(node_id),
        ("brokers", node_id, "configs"),
        f"broker={node_id}/config=",
        {"broker_id": node_id},
    )


_OF_CLUSTER = _Owner(
    "KafkaClusterConfig",
    ResourceType.BROKER,
    "",
    ("broker-configs",),
    "broker-config=",
    {"config_type": "BROKER"},
)


def _owner(request: HttpRequest) -> _Owner:
    """What the path names."""
    if "topic_name" in request.path:
        return _of_topic(request.path["topic_name"])
    if "broker_id" in request.path:
        return _of_broker(broker_of(request).node_id)
    return _OF_CLUSTER


# one owner


async def list_configs(request: HttpRequest) -> Response:
    place, owner = Place(request), _owner(request)
    return list_answer(
        f"{owner.kind}List",
        place.url(*owner.path),
        describe_configs(request.resources, owner.type, owner.name),
        lambda each: owner.document(place, each),
    )


async def get_config(request: HttpRequest) -> Response:
    place, owner, name = Place(request), _owner(request), request.path["name"]
    for each in describe_configs(request.resources, owner.type, owner.name):
        if each.name == name:
            return json_answer(owner.document(place, each))
    raise _no_config(name)


async def set_config(request: HttpRequest) -> Response:
    Place(request)
    owner, name = _owner(request), request.path["name"]
    value = Members(await request.json()).get("value")
    if value is None:
        raise RestError(400, "value is missing: DELETE takes a config back to its default.")
    return await _altered(request, owner, [Change(name, Operation.SET, config_text(name, value))])


async def reset_config(request: HttpRequest) -> Response:
    Place(request)
    owner = _owner(request)
    return await _altered(request, owner, [Change(request.path["name"], Operation.DELETE, None)])


async def alter(request: HttpRequest) -> Response:
    Place(request)
    owner = _owner(request)
    members = Members(await request.json())
    changes = _changes(members.required_items("data"))
    return await _altered(request, owner, changes, validate_only=members.boolean("validate_only"))


async def _altered(
    request: HttpRequest, owner: _Owner, changes: list[Change], *, validate_only: bool = False
) -> Response:
    if owner is not _OF_CLUSTER:
        _check_known(request, owner, changes)
    await alter_and_tell(request, owner.type, owner.name, changes, validate_only=validate_only)
    return no_content()


def _check_known(request: HttpRequest, owner: _Owner, changes: list[Change]) -> None:
    known = {each.name for each in describe_configs(request.resources, owner.type, owner.name)}
    for change in changes:
        if change.name not in known:
            raise _no_config(change.name)


def _changes(entries: list[Any]) -> list[Change]:
    changes: list[Change] = []
    for entry in entries:
        members = Members(entry, "an entry of data")
        name, value = members.text("name"), members.get("value")
        operation = (members.optional_text("operation") or "SET").upper()
        if operation == "DELETE":
            changes.append(Change(name, Operation.DELETE, None))
        elif operation == "SET":
            text = None if value is None else config_text(name, value)
            changes.append(Change(name, Operation.SET, text))
        else:
            raise RestError(400, f"operation must be SET or DELETE, not {operation[:50]!r}.")
    return changes


# several


async def list_of_topics(request: HttpRequest) -> Response:
    """All configs of all topics."""
    place, resources = Place(request), request.resources
    page = await in_turns(request, list_topics(resources, limit=EVERY_TOPIC))

    def each_config() -> Iterator[tuple[_Owner, Described]]:
        for topic in page.topics:
            try:
                described = describe_configs(resources, ResourceType.TOPIC, topic.name)
            except ApiError:  # not for this caller, or deleted meanwhile
                continue
            owner = _of_topic(topic.name)
            for each in described:
                yield owner, each

    return list_answer(
        "KafkaTopicConfigList",
        place.url("topics", "-", "configs"),
        each_config(),
        lambda each: each[0].document(place, each[1]),
    )


async def list_of_brokers(request: HttpRequest) -> Response:
    """All configs of all brokers."""
    place, resources = Place(request), request.resources
    owners = [_of_broker(node.node_id) for node in describe_cluster(resources, client_of(request)).nodes]
    found = [
        (owner, each) for owner in owners for each in describe_configs(resources, owner.type, owner.name)
    ]
    return list_answer(
        "KafkaBrokerConfigList",
        place.url("brokers", "-", "configs"),
        found,
        lambda each: each[0].document(place, each[1]),
    )


async def alter_topics(request: HttpRequest) -> Response:
    """Configs of several topics: each topic's are altered, or not, for themselves."""
    Place(request)
    members = Members(await request.json())
    entries = [Members(each, "an entry of data") for each in members.required_items("data")]
    if len(entries) > _MOST_TOPICS:
        raise RestError(400, f"One request may alter {_MOST_TOPICS} topics at most.")
    wanted = {each.text("topic_name"): _changes(each.required_items("configs")) for each in entries}
    validate_only = members.boolean("validate_only")
    failures: list[Document] = []
    for name, changes in wanted.items():
        try:
            await _altered(request, _of_topic(name), changes, validate_only=validate_only)
        except Exception as error:
            failures.append({"topic_name": name, **rest_error(error).document()})
    return json_answer({"failures": failures}, 207) if failures else no_content()


def _source(source: ConfigSource) -> str:
    return "DYNAMIC_TOPIC_CONFIG" if source is ConfigSource.TOPIC_CONFIG else source.name


def _no_config(name: str) -> RestError:
    return RestError(404, f"There is no config {name[:100]!r} here.")


_SYNONYM: Schema = {
    "type": "object",
    "required": ["name", "source"],
    "properties": {"name": STRING, "value": {"type": ["string", "null"]}, "source": STRING},
}
_CONFIG: dict[str, Schema] = {
    "name": STRING,
    "value": {"type": ["string", "null"]},
    "is_default": BOOLEAN,
    "is_read_only": BOOLEAN,
    "is_sensitive": BOOLEAN,
    "source": STRING,
    "synonyms": {"type": "array", "items": _SYNONYM},
}
_TOPIC_CONFIG = resource_schema("KafkaTopicConfig", topic_name=STRING, **_CONFIG)
_BROKER_CONFIG = resource_schema("KafkaBrokerConfig", broker_id=INTEGER, **_CONFIG)
_CLUSTER_CONFIG = resource_schema("KafkaClusterConfig", config_type=STRING, **_CONFIG)
_GIVEN_VALUE: Schema = {"type": ["string", "number", "boolean", "array", "null"], "items": STRING}
_VALUE: Schema = {"type": "object", "properties": {"value": _GIVEN_VALUE}}
_CHANGE: Schema = {
    "type": "object",
    "required": ["name"],
    "properties": {
        "name": STRING,
        "value": _GIVEN_VALUE,
        "operation": {"type": ["string", "null"], "enum": ["SET", "DELETE", None]},
    },
}
_VALIDATE_ONLY: Schema = {"type": ["boolean", "null"]}
_BATCH: Schema = {
    "type": "object",
    "required": ["data"],
    "properties": {"data": {"type": "array", "items": _CHANGE}, "validate_only": _VALIDATE_ONLY},
}


def _endpoints(path: str, what: str, config: Schema) -> tuple[Endpoint, ...]:
    one = f"{path}/{{name}}"
    configs = list_schema(f"{config['title']}List", config)
    return (
        endpoint("GET", path, list_configs, f"List the configs of {what}.", answers={200: configs}),
        endpoint("GET", one, get_config, f"Get a config of {what}.", answers={200: config}),
        endpoint("PUT", one, set_config, f"Set a config of {what}.", body=_VALUE, answers={204: None}),
        endpoint("DELETE", one, reset_config, f"Reset a config of {what}.", answers={204: None}),
        endpoint(
            "POST", f"{path}:alter", alter, f"Alter configs of {what}.", body=_BATCH, answers={204: None}
        ),
    )


ENDPOINTS: tuple[Endpoint, ...] = (
    *_endpoints("/topics/{topic_name}/configs", "a topic", _TOPIC_CONFIG),
    *_endpoints("/brokers/{broker_id}/configs", "a broker", _BROKER_CONFIG),
    *_endpoints("/broker-configs", "the cluster", _CLUSTER_CONFIG),
    endpoint(
        "GET",
        "/topics/-/configs",
        list_of_topics,
        "List the configs of all topics.",
        answers={200: list_schema("KafkaTopicConfigList", _TOPIC_CONFIG)},
    ),
    endpoint(
        "GET",
        "/brokers/-/configs",
        list_of_brokers,
        "List the configs of all brokers.",
        answers={200: list_schema("KafkaBrokerConfigList", _BROKER_CONFIG)},
    ),
    endpoint(
        "POST",
        "/topics/-/configs:alter",
        alter_topics,
        "Alter configs of several topics, each for itself.",
        body={
            "type": "object",
            "required": ["data"],
            "properties": {
                "data": {
                    "type": "array",
                    "items": {
                        "type": "object",
                        "required": ["topic_name", "configs"],
                        "properties": {"topic_name": STRING, "configs": {"type": "array", "items": _CHANGE}},
                    },
                },
                "validate_only": _VALIDATE_ONLY,
            },
        },
        answers={204: None, 207: {"type": "object", "properties": {"failures": {"type": "array"}}}},
    ),
)
