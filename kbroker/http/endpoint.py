"""What an endpoint is: where it is, what it does, and what the OpenAPI document says of it.

Endpoints are declared in the modules that `table.py` lists; the router and the document derive from them.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from starlette.websockets import WebSocket

    from kbroker.http.answers import Response
    from kbroker.http.request import HttpRequest

Schema = Mapping[str, Any]
"""A JSON Schema, as OpenAPI 3.1 has it."""

STRING: Schema = {"type": "string"}
INTEGER: Schema = {"type": "integer"}
BOOLEAN: Schema = {"type": "boolean"}
FLAG: Schema = {"anyOf": [{"type": "boolean"}, {"enum": ["", "1", "0", "yes", "no", "on", "off"]}]}
"""A boolean of a query: `?raw` and `?raw=1` are true, too."""
OBJECT: Schema = {"type": "object"}

JSON = "application/json"
WEBSOCKET = "WEBSOCKET"
"""The method of an endpoint that is a WebSocket."""


@dataclass(frozen=True, slots=True)
class Parameter:
    """Of the query or of the header; one of the path stands in it, and here if there is more to say of it."""

    name: str
    doc: str
    schema: Schema = field(default_factory=lambda: STRING)
    where: str = "query"
    required: bool = False


@dataclass(frozen=True, slots=True)
class Answer:
    """One status that an endpoint answers with.

    ``content``: by media type; None: no body, or a problem document if the status is a failure's.
    """

    doc: str
    content: Mapping[str, Schema] | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Endpoint:
    method: str
    path: str
    """Below the prefix of its module: /topics/{topic}."""
    handle: Callable[[HttpRequest], Awaitable[Response]]
    summary: str
    parameters: tuple[Parameter, ...] = ()
    body: Mapping[str, Schema] | None = None
    """By media type."""
    answers: Mapping[int, Answer] = field(default_factory=lambda: {200: Answer("Done.", {JSON: OBJECT})})
    media: str | None = None
    """Taken only for requests with this in Content-Type or Accept, before others of the same path."""
    public: bool = False
    """Whether it is answered to who has not said who they are."""
    socket: Callable[[WebSocket, HttpRequest], Awaitable[None]] | None = None
    """Of a WebSocket: what speaks on it, instead of ``handle``."""
    at_once: bool = False
    """Whether it needs no task of its own as long as it does not wait (at_once.py)."""
    quota: str | None = None
    """PRODUCER_BYTE_RATE if its body is published, CONSUMER_BYTE_RATE if its answer is what it reads: bytes
    that count for its caller's quota, and wait for it.
    """
    tag: str = ""
    description: str = ""
    """What there is to say besides the summary."""
    body_required: bool = True


def json_body(schema: Schema) -> Mapping[str, Schema]:
    return {JSON: schema}


def json_answer_of(doc: str, schema: Schema) -> Answer:
    return Answer(doc, {JSON: schema})
