"""How endpoints of version 3 are declared: below one cluster, with failures in Confluent's form."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING

from kbroker.http.endpoint import JSON, Answer, Endpoint, Parameter, Schema, json_body
from kbroker.http.rest_proxy.errors import in_confluents_form
from kbroker.http.rest_proxy.v3.documents import ERROR

if TYPE_CHECKING:
    from kbroker.http.answers import Response
    from kbroker.http.request import HttpRequest

CLUSTER = "/clusters/{cluster_id}"
_REFUSED = {
    status: Answer(doc, {JSON: ERROR})
    for status, doc in {
        400: "The request makes no sense, or Kafka refuses it.",
        401: "The caller did not say who they are.",
        403: "The caller may not do this.",
        404: "There is no such thing.",
        408: "The body did not come in time.",
        413: "The body, or a record in it, is too large.",
        422: "The body is empty, or not as it must be.",
        429: "The caller's quota is used up.",
        500: "The broker could not do it.",
        501: "It needs a Schema Registry.",
        503: "The broker cannot do it now.",
    }.items()
}


def endpoint(
    method: str,
    path: str,
    handle: Callable[[HttpRequest], Awaitable[Response]],
    summary: str,
    *,
    parameters: tuple[Parameter, ...] = (),
    body: Schema | None = None,
    answers: Mapping[int, Schema | None],
    at_once: bool = False,
    quota: str | None = None,
) -> Endpoint:
    """``path``: below the cluster; ``answers``: schemas by status, None without a body."""
    return Endpoint(
        method,
        CLUSTER + path,
        in_confluents_form(handle),
        summary,
        parameters,
        None if body is None else json_body(body),
        {
            **{
                status: Answer("Done.", None if schema is None else {JSON: schema})
                for status, schema in answers.items()
            },
            **_REFUSED,
        },
        at_once=at_once,
        quota=quota,
        tag="Confluent REST Proxy v3",
    )
