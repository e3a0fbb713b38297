"""The OpenAPI 3.1 document, made of the table of endpoints.

- Endpoints that serve the same path and method by media type are one operation. A WebSocket is a GET that
  answers 101.
- The short paths are left out, but for what Confluent's REST Proxy has at the same path and method: there the
  document says what both answer.
- A schema with a title stands once, among the components, however often it is used.
- What an endpoint does not say of its failures is said here: they are problem documents, or what Confluent's
  REST Proxy answers on its paths.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from kbroker import __version__
from kbroker.http.answers import encoded
from kbroker.http.endpoint import INTEGER, JSON, STRING, WEBSOCKET, Answer, Endpoint, Parameter, Schema
from kbroker.http.problems import MEDIA_TYPE
from kbroker.http.table import PREFIX

if TYPE_CHECKING:
    from kbroker.requests.long_requests import Steps

PROBLEM: Schema = {
    "title": "Problem",
    "description": "What is wrong, and what to do (RFC 9457).",
    "type": "object",
    "required": ["type", "title", "status", "detail"],
    "properties": {
        "type": STRING,
        "title": {"type": "string", "description": "The phrase of the status."},
        "status": INTEGER,
        "detail": {"type": "string", "description": "What is wrong, and what to do."},
        "instance": {"type": "string", "description": "Names the request: urn:kbroker:request:ID."},
        "error": {"type": "string", "description": "The name of Kafka's error, if it is one."},
        "errorCode": {"type": "integer", "description": "Its number."},
        "retriable": {"type": "boolean", "description": "Whether the same request may succeed later."},
    },
    "additionalProperties": True,
}

_PROBLEMS: dict[str, Answer] = {
    "4XX": Answer("The request cannot be served: the document says why.", {MEDIA_TYPE: PROBLEM}),
    "5XX": Answer("The broker could not do it, or not now.", {MEDIA_TYPE: PROBLEM}),
}

_CONFLUENT_ERROR: Schema = {
    "title": "ConfluentError",
    "description": "What is wrong, as Confluent's REST Proxy says it.",
    "type": "object",
    "required": ["error_code", "message"],
    "properties": {
        "error_code": {"type": "integer", "description": "The status, or five digits that begin with it."},
        "message": STRING,
    },
}
_CONFLUENT_ERRORS = {
    "4XX": Answer("The request cannot be served.", {JSON: _CONFLUENT_ERROR}),
    "5XX": Answer("The broker could not do it, or not now.", {JSON: _CONFLUENT_ERROR}),
}

_NUMBER: Schema = {"type": "integer", "format": "int32", "minimum": 0}
_PATH_PARAMETERS: Mapping[str, tuple[str, Schema]] = {
    "topic": ("The name of a topic.", STRING),
    "topic_name": ("The name of a topic.", STRING),
    "partition_id": ("The number of a partition.", _NUMBER),
    "cluster_id": ("The id of the cluster; /v3/clusters tells it.", STRING),
    "consumer_group_id": ("The id of a group.", STRING),
    "consumer_id": ("The id of a member of the group.", STRING),
    "instance": ("The id of a consumer instance.", STRING),
    "consumer": ("The name of a consumer of the group.", STRING),
    "transaction": ("The name of a transaction, as its begin told it.", STRING),
    "trace": ("The id of a trace: 32 hexadecimal digits, the second part of its traceparent.", STRING),
    "transactionalId": ("The transactional id of a producer.", STRING),
    "partition": ("The number of a partition.", _NUMBER),
    "group": ("The id of a group.", STRING),
    "broker": ("The id of a broker.", _NUMBER),
    "broker_id": ("The id of a broker.", _NUMBER),
    "name": ("The name of a config.", STRING),
}

_SECURITY_SCHEMES = {
    "basic": {"type": "http", "scheme": "basic", "description": "A user of PLAIN or SCRAM."},
    "bearer": {
        "type": "http",
        "scheme": "bearer",
        "bearerFormat": "JWT",
        "description": "A token of the provider that the broker trusts.",
    },
    "mutualTLS": {"type": "mutualTLS", "description": "The client's certificate says who it is."},
}

CONFLUENT = "Confluent REST Proxy"
TAGS = {
    "cluster": "The broker, and what it is part of.",
    "topics": "Topics and their partitions.",
    "configs": "Configs of topics, brokers, groups and the cluster.",
    "acls": "Who may do what, where the broker has an authorizer.",
    "publishing": "Records in, one or many, all or nothing.",
    "fetching": "Records out, from where the client says.",
    "streams": "Records as they come: WebSocket and server-sent events.",
    "groups": "Groups of every type, their lag and their offsets.",
    "consumers": "Consumers in the broker: members of groups for clients that have nothing but HTTP.",
    "transactions": "Records and offsets that count together or not at all.",
    "traces": "What happened to records of topics that are traced.",
    "Confluent REST Proxy v2": "The older API of Confluent's REST Proxy, with consumer instances.",
    "Confluent REST Proxy v3": "What clients of Confluent's REST Proxy use; its failures have its form.",
    "metrics": "What the broker measures, for Prometheus.",
    "health": "Whether the broker is alive, and ready for work.",
    "documentation": "This document.",
}

_ABOUT = f"""\
Everything below `{PREFIX}` is there without that prefix, too: `/topics` is `{PREFIX}/topics`.

Failures are problem documents (RFC 9457, `{MEDIA_TYPE}`): `detail` says what is wrong and what to do.
On the paths of Confluent's REST Proxy they have its form. Each answer has an `X-Request-Id`, the client's own
if it sent one; the broker's log has it as well.

Where a listener asks who comes, a password (Basic), a token (Bearer) or a certificate says so.\
"""


def steps(table: Iterable[tuple[str, Endpoint]]) -> Steps[bytes]:
    """The document as JSON, made with room for others after each path."""
    components = _Components()
    paths: list[bytes] = []
    tags: set[str] = set()
    ids: set[str] = set()
    table = list(table)
    short = _short(table)
    for path, methods in listed(table).items():
        item = {}
        for method, alike in methods.items():
            operation = _operation(path, method, alike, short.get((path, method), ()), components, ids)
            tags.update(operation["tags"])
            item[method.lower()] = operation
        paths.append(encoded(path) + b":" + encoded(item))
        yield None
    head = encoded(
        {
            "openapi": "3.1.0",
            "info": {
                "title": "kbroker",
                "version": __version__,
                "summary": "Kafka's topics by HTTP.",
                "description": _ABOUT,
                "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
            },
            "servers": [{"url": "/"}],
            "security": [{}, *({name: []} for name in _SECURITY_SCHEMES)],
            "tags": [{"name": name, "description": doc} for name, doc in TAGS.items() if name in tags],
        }
    )
    yield None
    tail = encoded({"schemas": components.schemas, "securitySchemes": _SECURITY_SCHEMES})
    return b'%s,"paths":{%s},"components":%s}' % (head[:-1], b",".join(paths), tail)


def listed(table: Iterable[tuple[str, Endpoint]]) -> dict[str, dict[str, list[Endpoint]]]:
    """What the document tells: by path and method, without the short paths."""
    paths: dict[str, dict[str, list[Endpoint]]] = {}
    endpoints = list(table)
    prefixed = _prefixed(endpoints)
    for path, endpoint in endpoints:
        if endpoint in prefixed and not path.startswith(PREFIX):
            continue
        paths.setdefault(path.rstrip("/") or "/", {}).setdefault(_method(endpoint), []).append(endpoint)
    return paths


def _short(table: Iterable[tuple[str, Endpoint]]) -> dict[tuple[str, str], list[Endpoint]]:
    """What is served without the prefix as well, by that path and method."""
    endpoints = list(table)
    prefixed = _prefixed(endpoints)
    found: dict[tuple[str, str], list[Endpoint]] = {}
    for path, endpoint in endpoints:
        if endpoint in prefixed and not path.startswith(PREFIX):
            found.setdefault((path.rstrip("/") or "/", _method(endpoint)), []).append(endpoint)
    return found


def _prefixed(table: Iterable[tuple[str, Endpoint]]) -> set[Endpoint]:
    return {endpoint for path, endpoint in table if path.startswith(PREFIX)}


def _method(endpoint: Endpoint) -> str:
    return "GET" if endpoint.method == WEBSOCKET else endpoint.method


class _Components:
    """The schemas that have a name."""

    def __init__(self) -> None:
        self.schemas: dict[str, Any] = {}
        self._origins: dict[str, Schema] = {}

    def placed(self, schema: Any) -> Any:
        """The schema, or where it stands; what it holds likewise."""
        if isinstance(schema, list | tuple):
            return [self.placed(each) for each in schema]
        if not isinstance(schema, Mapping):
            return schema
        title = schema.get("title")
        if not isinstance(title, str):
            return {name: self.placed(each) for name, each in schema.items()}
        name = re.sub(r"\W", "", title)
        origin = self._origins.setdefault(name, schema)
        if origin is not schema and origin != schema:
            raise ValueError(f"two schemas have the title {title}")
        if name not in self.schemas:
            self.schemas[name] = {}  # it may hold itself
            self.schemas[name] = {member: self.placed(each) for member, each in schema.items()}
        return {"$ref": f"#/components/schemas/{name}"}


def _operation(
    path: str,
    method: str,
    alike: list[Endpoint],
    short: Iterable[Endpoint],
    components: _Components,
    ids: set[str],
) -> dict[str, Any]:
    """``short``: those of the plain API at this path, which have an operation of their own."""
    plain = sorted(alike, key=lambda each: (each.method == WEBSOCKET, each.media is not None))
    plain += short
    first = plain[0]
    operation: dict[str, Any] = {
        "operationId": _operation_id(path, method, first.tag, ids),
        "summary": first.summary.rstrip("."),
        "tags": [first.tag],
    }
    if len(plain) > 1:
        operation["description"] = "\n\n".join(_variant(each) for each in plain)
    elif first.description:
        operation["description"] = first.description
    parameters = [*_path_parameters(path, plain), *_other_parameters(plain)]
    if parameters:
        operation["parameters"] = [_parameter(each, components) for each in parameters]
    content = {
        media: {"schema": components.placed(schema)}
        for each in plain
        for media, schema in (each.body or {}).items()
    }
    if content:
        operation["requestBody"] = {"content": content, "required": all(each.body_required for each in plain)}
    operation["responses"] = _responses(plain, components)
    if all(each.public for each in plain):
        operation["security"] = [{}]
    if any(each.method == WEBSOCKET for each in plain):
        operation["x-websocket"] = True
    return operation


def _variant(endpoint: Endpoint) -> str:
    told = f"{endpoint.summary} {endpoint.description}".strip()
    if endpoint.method == WEBSOCKET:
        return f"As a WebSocket: {told}"
    return f"With `{endpoint.media}`: {told}" if endpoint.media else told


def _operation_id(path: str, method: str, tag: str, ids: set[str]) -> str:
    """/topics/{topic}/partitions: getTopicPartitions."""
    named = re.sub(r"[^/]+/(?={)", "", path.removeprefix(PREFIX))
    made = method.lower() + (_camel(named) or "Root")
    if made in ids:
        made += _camel(tag)
    if made in ids:
        raise ValueError(f"two operations are called {made}")
    ids.add(made)
    return made


def _camel(text: str) -> str:
    return "".join(word[:1].upper() + word[1:] for word in re.findall(r"[A-Za-z0-9]+", text))


def _path_parameters(path: str, alike: Iterable[Endpoint]) -> Iterator[Parameter]:
    own = {each.name: each for endpoint in alike for each in endpoint.parameters if each.where == "path"}
    for name in re.findall(r"{(\w+)}", path):
        if name in own:
            yield own[name]
        else:
            doc, schema = _PATH_PARAMETERS.get(name, ("", STRING))
            yield Parameter(name, doc, schema, "path", required=True)


def _other_parameters(alike: list[Endpoint]) -> Iterator[Parameter]:
    seen: set[tuple[str, str]] = set()
    for endpoint in alike:
        for each in endpoint.parameters:
            if each.where != "path" and (each.where, each.name.lower()) not in seen:
                seen.add((each.where, each.name.lower()))
                yield each


def _parameter(parameter: Parameter, components: _Components) -> dict[str, Any]:
    told: dict[str, Any] = {
        "name": parameter.name,
        "in": parameter.where,
        "description": parameter.doc,
        "schema": components.placed(parameter.schema),
    }
    if parameter.required or parameter.where == "path":
        told["required"] = True
    return told


def _responses(alike: list[Endpoint], components: _Components) -> dict[str, Any]:
    told: dict[str, Answer] = {}
    failures = {str(status) for each in alike for status in each.answers if status >= 400}
    for endpoint in alike:
        errors = _CONFLUENT_ERRORS if endpoint.tag.startswith(CONFLUENT) else _PROBLEMS
        problem = errors["4XX"].content
        answers = {
            str(status): answer if answer.content or status < 400 else Answer(answer.doc, problem)
            for status, answer in endpoint.answers.items()
        }
        if endpoint.method == WEBSOCKET:
            answers = {"101": Answer("A WebSocket from here on.")}
        # A status that only another one names may be this one's, too.
        unnamed = {status: errors[f"{status[0]}XX"] for status in failures - answers.keys()}
        for status, answer in (answers | unnamed | errors).items():
            before = told.get(status)
            if before is None:
                told[status] = answer
            elif answer.content:
                told[status] = Answer(before.doc, {**answer.content, **(before.content or {})})
    return {
        status: {
            "description": answer.doc,
            **(
                {
                    "content": {
                        media: {"schema": components.placed(schema)}
                        for media, schema in answer.content.items()
                    }
                }
                if answer.content
                else {}
            ),
        }
        for status, answer in sorted(told.items())
    }
