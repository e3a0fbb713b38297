"""Configs of topics, brokers, groups and the whole cluster: described and altered."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from kbroker.config.resources import Change, Operation, ResourceType
from kbroker.config.settings import ConfigSource
from kbroker.http.answers import json_answer
from kbroker.http.endpoint import (
    BOOLEAN,
    FLAG,
    STRING,
    Endpoint,
    Parameter,
    Schema,
    json_answer_of,
    json_body,
)
from kbroker.http.members import Members, config_text
from kbroker.network.awaiting import settled
from kbroker.operations.configs import alter_and_tell_configs, alter_configs, describe_configs

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kbroker.config.description import Described
    from kbroker.http.answers import Response
    from kbroker.http.request import HttpRequest

_VALIDATE_ONLY = Parameter("validateOnly", "Only say whether they could be altered.", FLAG)


def config_changes(value: Any) -> list[Change]:
    """Of an object of names and values; null takes one back to its default."""
    Members(value, "configs")
    return [
        Change(name, Operation.DELETE, None)
        if new is None
        else Change(name, Operation.SET, config_text(name, new))
        for name, new in value.items()
    ]


async def altered(request: HttpRequest, type_: ResourceType, name: str, changes: Sequence[Change]) -> None:
    """Alter them, or only see whether that could be, as the query says; told to the audit log."""
    validate_only = request.query("validateOnly", bool, default=False)
    await alter_and_tell(request, type_, name, changes, validate_only=validate_only)


async def alter_and_tell(
    request: HttpRequest, type_: ResourceType, name: str, changes: Sequence[Change], *, validate_only: bool
) -> None:
    resources = request.resources
    if validate_only:
        await settled(alter_configs(resources, type_, name, changes, validate_only=True))
    else:
        await settled(alter_and_tell_configs(resources, type_, name, changes))


def _config(each: Described) -> dict[str, Any]:
    return {
        "name": each.name,
        "value": each.value,
        "source": each.source.name,
        "default": each.source is ConfigSource.DEFAULT_CONFIG,
        "readOnly": each.read_only,
        "sensitive": each.is_sensitive,
        "doc": each.doc,
    }


Handle = Callable[["HttpRequest"], Awaitable["Response"]]


def _handlers(type_: ResourceType, parameter: str | None) -> tuple[Handle, Handle]:
    """What describes and what alters the configs of resources of this type."""

    def name_of(request: HttpRequest) -> str:
        return "" if parameter is None else request.path[parameter]

    async def describe(request: HttpRequest) -> Response:
        described = describe_configs(request.resources, type_, name_of(request))
        return json_answer({"configs": [_config(each) for each in described]})

    async def alter(request: HttpRequest) -> Response:
        changes = config_changes(await request.json())
        await altered(request, type_, name_of(request), changes)
        return await describe(request)

    return describe, alter


_CONFIG: Schema = {
    "type": "object",
    "required": ["name", "value", "source", "default", "readOnly", "sensitive", "doc"],
    "properties": {
        "name": STRING,
        "value": {"type": ["string", "null"], "description": "Null where it is secret, or not set."},
        "source": STRING,
        "default": BOOLEAN,
        "readOnly": BOOLEAN,
        "sensitive": BOOLEAN,
        "doc": {"type": ["string", "null"]},
    },
}
_ALL: Schema = {
    "type": "object",
    "required": ["configs"],
    "properties": {"configs": {"type": "array", "items": _CONFIG}},
}
_CHANGES: Schema = {
    "type": "object",
    "description": "Names and values; null takes a config back to its default.",
    "additionalProperties": {"type": ["string", "number", "boolean", "array", "null"], "items": STRING},
}


def _endpoints(path: str, what: str, type_: ResourceType, parameter: str | None) -> tuple[Endpoint, Endpoint]:
    describe, alter = _handlers(type_, parameter)
    answers = {200: json_answer_of("The values in force, and where they come from.", _ALL)}
    return (
        Endpoint("GET", path, describe, f"Describe the configs of {what}.", answers=answers, tag="configs"),
        Endpoint(
            "PATCH",
            path,
            alter,
            f"Alter configs of {what}, all of them or none.",
            (_VALIDATE_ONLY,),
            json_body(_CHANGES),
            answers,
            tag="configs",
        ),
    )


ENDPOINTS = (
    *_endpoints("/topics/{topic}/configs", "a topic", ResourceType.TOPIC, "topic"),
    *_endpoints("/brokers/{broker}/configs", "a broker", ResourceType.BROKER, "broker"),
    *_endpoints("/groups/{group}/configs", "a group", ResourceType.GROUP, "group"),
    *_endpoints("/cluster/configs", "all brokers", ResourceType.BROKER, None),
)
