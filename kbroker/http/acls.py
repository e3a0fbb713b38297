"""ACLs: listed, created and deleted. A broker without an authorizer has none."""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING, Any, TypeVar

from kbroker.http.answers import json_answer
from kbroker.http.endpoint import STRING, Endpoint, Parameter, Schema, json_answer_of, json_body
from kbroker.http.members import Members
from kbroker.http.paging import LIMIT, limit_of
from kbroker.http.problems import Problem
from kbroker.http.turns import in_turns
from kbroker.operations.acls import Created, check_acl, create_acls, delete_acls, find_acls
from kbroker.protocol.errors import ApiError
from kbroker.security.acl_bindings import AclBinding, AclFilter
from kbroker.security.acls import AclOperation, AclResourceType, PatternType, Permission

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kbroker.http.answers import Response
    from kbroker.http.request import HttpRequest

E = TypeVar("E", bound=IntEnum)

_MOST = 1000  # of one request
_WORDS: dict[str, type[IntEnum]] = {
    "resourceType": AclResourceType,
    "patternType": PatternType,
    "operation": AclOperation,
    "permission": Permission,
}
NAMES = ("resourceType", "resourceName", "patternType", "principal", "host", "operation", "permission")
"""Of the members of an ACL, in their order."""


async def list_some(request: HttpRequest) -> Response:
    limit, after = limit_of(request), request.query("after", int, 0)
    found = await in_turns(request, find_acls(request.resources, acl_filter(request)))
    first = max(after, 0)
    page = found[first : first + limit]
    more = first + limit < len(found)
    return json_answer(
        {"acls": [document_of(binding) for binding in page], "next": first + limit if more else None}
    )


async def create(request: HttpRequest) -> Response:
    asked = Members(await request.json()).only("acls").required_items("acls")
    if len(asked) > _MOST:
        raise Problem(400, f"One request may create {_MOST} ACLs at most.")
    bindings = [binding_of(each) for each in asked]
    for binding in bindings:
        check_acl(binding)
    await created(request, bindings)
    return json_answer({"acls": [document_of(binding) for binding in bindings]}, 201)


async def delete(request: HttpRequest) -> Response:
    missing = [name for name in _WORDS if name not in request.parameters]
    if missing:
        raise Problem(
            400, f"{missing[0]} is missing; ANY stands for all. So that nothing is deleted by mistake."
        )
    found = await deleted(request, acl_filter(request))
    return json_answer({"acls": [document_of(binding) for binding in found]})


async def created(request: HttpRequest, bindings: Sequence[AclBinding]) -> Created:
    """Create those that make sense, and tell the audit log. Returns what is wrong with the others."""
    resources = request.resources
    try:
        problems = await in_turns(request, create_acls(resources, bindings))
    except Exception as error:
        for binding in bindings:
            resources.tell_change("ACL", binding.resource_name, error, document_of(binding))
        raise
    for binding, problem in zip(bindings, problems, strict=True):
        resources.tell_change("ACL", binding.resource_name, problem, document_of(binding))
    return problems


async def deleted(request: HttpRequest, wanted: AclFilter) -> list[AclBinding]:
    """Delete what the filter finds, and tell the audit log."""
    resources = request.resources
    try:
        (found,) = await in_turns(request, delete_acls(resources, [wanted]))
        if isinstance(found, ApiError):
            raise found
    except Exception as error:
        resources.tell_change("ACL", wanted.resource_name or "", error)
        raise
    for binding in found:
        resources.tell_change("ACL", binding.resource_name, None, document_of(binding))
    return found


def document_of(binding: AclBinding) -> dict[str, Any]:
    values = (each.name if isinstance(each, IntEnum) else each for each in binding)
    return dict(zip(NAMES, values, strict=True))


def binding_of(value: Any) -> AclBinding:
    members = Members(value, "an ACL").only(*NAMES)
    return AclBinding(
        word(AclResourceType, members.text("resourceType"), "resourceType"),
        members.text("resourceName"),
        word(PatternType, members.optional_text("patternType") or "LITERAL", "patternType"),
        members.text("principal"),
        members.optional_text("host") or "*",
        word(AclOperation, members.text("operation"), "operation"),
        word(Permission, members.optional_text("permission") or "ALLOW", "permission"),
    )


def acl_filter(request: HttpRequest) -> AclFilter:
    """Of the query; what it does not name is not asked for."""

    def text(name: str) -> str | None:
        return request.query(name, str) or None

    return AclFilter(
        word(AclResourceType, text("resourceType") or "ANY", "resourceType", filters=True),
        text("resourceName"),
        word(PatternType, text("patternType") or "ANY", "patternType", filters=True),
        text("principal"),
        text("host"),
        word(AclOperation, text("operation") or "ANY", "operation", filters=True),
        word(Permission, text("permission") or "ANY", "permission", filters=True),
    )


def word(kind: type[E], text: str, name: str, *, filters: bool = False) -> E:
    """Upper or lower case. ``filters``: also one that only a filter may have."""
    known = _words(kind, filters=filters)
    folded = text.upper()
    if folded not in known:
        raise Problem(400, f"{name} must be one of {', '.join(known)}, not {text[:50]!r}.")
    return kind[folded]


def _words(kind: type[IntEnum], *, filters: bool) -> list[str]:
    unfit = {"UNKNOWN"} if filters else {"UNKNOWN", "ANY", "MATCH"}
    return [each.name for each in kind if each.name not in unfit]


_FILTERS = tuple(
    Parameter(
        name,
        f"Only ACLs with this {name}.",
        {"type": "string", "enum": _words(_WORDS[name], filters=True)} if name in _WORDS else STRING,
    )
    for name in NAMES
)
_ACL_MEMBERS: dict[str, Schema] = {
    name: {"type": "string", "enum": _words(_WORDS[name], filters=False)} if name in _WORDS else STRING
    for name in NAMES
}
_ACL: Schema = {"type": "object", "required": [*NAMES], "properties": _ACL_MEMBERS}
_NEW: Schema = {
    "type": "object",
    "required": ["resourceType", "resourceName", "principal", "operation"],
    "additionalProperties": False,
    "properties": _ACL_MEMBERS,
}
_ACLS: Schema = {
    "type": "object",
    "required": ["acls"],
    "properties": {"acls": {"type": "array", "items": _ACL}, "next": {"type": ["integer", "null"]}},
}
_TAG = "acls"

ENDPOINTS = (
    Endpoint(
        "GET",
        "/acls",
        list_some,
        "List the ACLs that a filter finds, page by page.",
        (*_FILTERS, Parameter("after", "`next` of the page before.", {"type": "integer"}), LIMIT),
        answers={200: json_answer_of("One page.", _ACLS)},
        tag=_TAG,
    ),
    Endpoint(
        "POST",
        "/acls",
        create,
        "Create ACLs; one that is there already is fine.",
        body=json_body(
            {
                "type": "object",
                "required": ["acls"],
                "additionalProperties": False,
                "properties": {"acls": {"type": "array", "items": _NEW, "maxItems": _MOST}},
            }
        ),
        answers={201: json_answer_of("They hold.", _ACLS)},
        tag=_TAG,
    ),
    Endpoint(
        "DELETE",
        "/acls",
        delete,
        "Delete the ACLs that a filter finds.",
        _FILTERS,
        answers={200: json_answer_of("Those that are gone.", _ACLS)},
        tag=_TAG,
    ),
)
