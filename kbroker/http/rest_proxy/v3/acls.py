"""ACLs: searched, created and deleted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from kbroker.http.acls import created, deleted, word
from kbroker.http.answers import Response, json_answer
from kbroker.http.endpoint import OBJECT, STRING, Endpoint, Parameter, Schema
from kbroker.http.members import Members
from kbroker.http.rest_proxy.errors import RestError
from kbroker.http.rest_proxy.v3.documents import Document, Place, list_answer, list_schema, resource_schema
from kbroker.http.rest_proxy.v3.endpoints import endpoint
from kbroker.http.turns import in_turns
from kbroker.operations.acls import check_acl, find_acls
from kbroker.security.acl_bindings import AclBinding, AclFilter
from kbroker.security.acls import AclOperation, AclResourceType, PatternType, Permission

if TYPE_CHECKING:
    from kbroker.http.request import HttpRequest

_NAMES = ("resource_type", "resource_name", "pattern_type", "principal", "host", "operation", "permission")
_KINDS = {
    "resource_type": AclResourceType,
    "pattern_type": PatternType,
    "operation": AclOperation,
    "permission": Permission,
}
_MOST = 1000  # of one request


async def search(request: HttpRequest) -> Response:
    place, wanted = Place(request), _filter(request)
    found = await in_turns(request, find_acls(request.resources, wanted))
    url = f"{place.url('acls')}?{urlencode(_texts(wanted))}"
    return list_answer("KafkaAclList", url, sorted(found), lambda binding: _acl(place, binding))


async def create(request: HttpRequest) -> Response:
    place = Place(request)
    binding = _binding(await request.json())
    await created(request, [binding])
    return Response(None, 201, {"location": f"{place.url('acls')}?{urlencode(_texts(binding))}"})


async def create_batch(request: HttpRequest) -> Response:
    Place(request)
    entries = Members(await request.json()).required_items("data")
    if len(entries) > _MOST:
        raise RestError(400, f"One request may create {_MOST} ACLs at most.")
    await created(request, [_binding(each) for each in entries])
    return Response(None, 201)


async def delete(request: HttpRequest) -> Response:
    place = Place(request)
    for name in _KINDS:
        if not request.query(name, str):
            raise RestError(400, f"{name} is missing; ANY stands for all.")
    found = await deleted(request, _filter(request))
    return json_answer({"data": [_acl(place, binding) for binding in sorted(found)]})


def _filter(request: HttpRequest) -> AclFilter:
    def text(name: str) -> str | None:
        return request.query(name, str) or None

    return AclFilter(
        word(AclResourceType, text("resource_type") or "ANY", "resource_type", filters=True),
        text("resource_name"),
        word(PatternType, text("pattern_type") or "ANY", "pattern_type", filters=True),
        text("principal"),
        text("host"),
        word(AclOperation, text("operation") or "ANY", "operation", filters=True),
        word(Permission, text("permission") or "ANY", "permission", filters=True),
    )


def _binding(value: Any) -> AclBinding:
    members = Members(value, "an ACL")
    binding = AclBinding(
        word(AclResourceType, members.text("resource_type"), "resource_type"),
        members.text("resource_name"),
        word(PatternType, members.text("pattern_type"), "pattern_type"),
        members.text("principal"),
        members.text("host"),
        word(AclOperation, members.text("operation"), "operation"),
        word(Permission, members.text("permission"), "permission"),
    )
    check_acl(binding)
    return binding


def _acl(place: Place, binding: AclBinding) -> Document:
    texts = _texts(binding)
    document = place.resource("KafkaAcl", ("acls",), None, dict(texts))
    document["metadata"]["self"] += f"?{urlencode(texts)}"
    return document


def _texts(acl: AclBinding | AclFilter) -> dict[str, str]:
    values = ("" if value is None else value if isinstance(value, str) else value.name for value in acl)
    return dict(zip(_NAMES, values, strict=True))


def _parameters(*, required: bool) -> tuple[Parameter, ...]:
    return tuple(
        Parameter(
            name,
            "ANY stands for all." if name in _KINDS else "Nothing stands for all.",
            {"type": "string", "enum": [each.name for each in _KINDS[name] if each]}
            if name in _KINDS
            else STRING,
            required=required and name in _KINDS,
        )
        for name in _NAMES
    )


_ACL = resource_schema("KafkaAcl", **dict.fromkeys(_NAMES, STRING))
_NEW: Schema = {"type": "object", "required": [*_NAMES], "properties": dict.fromkeys(_NAMES, STRING)}

ENDPOINTS: tuple[Endpoint, ...] = (
    endpoint(
        "GET",
        "/acls",
        search,
        "Search ACLs.",
        parameters=_parameters(required=False),
        answers={200: list_schema("KafkaAclList", _ACL)},
    ),
    endpoint("POST", "/acls", create, "Create an ACL.", body=_NEW, answers={201: None}),
    endpoint(
        "DELETE",
        "/acls",
        delete,
        "Delete the ACLs that a filter finds.",
        parameters=_parameters(required=True),
        answers={200: OBJECT},
    ),
    endpoint(
        "POST",
        "/acls:batch",
        create_batch,
        "Create ACLs.",
        body={
            "type": "object",
            "required": ["data"],
            "properties": {"data": {"type": "array", "items": _NEW}},
        },
        answers={201: None},
    ),
)
