"""How endpoints of version 2 are declared: with their media types, and failures in Confluent's form."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING

from kbroker.http.endpoint import INTEGER, STRING, Answer, Endpoint, Parameter, Schema
from kbroker.http.rest_proxy.errors import in_confluents_form
from kbroker.http.rest_proxy.v2.media import V2, Format

if TYPE_CHECKING:
    from kbroker.http.answers import Response
    from kbroker.http.request import HttpRequest

TAG = "Confluent REST Proxy v2"

_ERROR: Schema = {
    "type": "object",
    "required": ["error_code", "message"],
    "properties": {"error_code": INTEGER, "message": STRING},
}
_REFUSED = {
    status: Answer(doc, {"application/json": _ERROR})
    for status, doc in {
        400: "The request makes no sense, or Kafka refuses it.",
        401: "The caller did not say who they are.",
        403: "The caller may not do this.",
        404: "There is no such thing.",
        406: "The answer has another format.",
        408: "The body did not come in time.",
        409: "It does not fit what the consumer is.",
        413: "The body is too large.",
        415: "The body has another format.",
        422: "The body is not as it must be.",
        429: "There are too many consumers, or the caller's quota is used up.",
        500: "The broker could not do it.",
        501: "It needs a Schema Registry.",
        503: "The broker cannot do it now.",
    }.items()
}
WITH_DATA = (Format.BINARY.media_type, Format.JSON.media_type)


def endpoint(
    method: str,
    path: str,
    handle: Callable[[HttpRequest], Awaitable[Response]],
    summary: str,
    *,
    parameters: tuple[Parameter, ...] = (),
    body: Schema | None = None,
    body_types: tuple[str, ...] = (V2,),
    body_required: bool = True,
    answers: Mapping[int, Schema | None],
    answer_types: tuple[str, ...] = (V2,),
    media: str | None = None,
    at_once: bool = False,
    quota: str | None = None,
) -> Endpoint:
    """``answers``: schemas by status, None without a body; ``media``: on a path that the plain API has."""
    return Endpoint(
        method,
        path,
        in_confluents_form(handle),
        summary,
        parameters,
        None if body is None else dict.fromkeys(body_types, body),
        {
            **{
                status: Answer("Done.", None if schema is None else dict.fromkeys(answer_types, schema))
                for status, schema in answers.items()
            },
            **_REFUSED,
        },
        media=media,
        at_once=at_once,
        quota=quota,
        tag=TAG,
        body_required=body_required,
    )
