"""What probes ask: whether the broker is alive, and whether it may be sent work. For anybody: they have no
passwords, and learn nothing but that.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kbroker.http.answers import json_answer
from kbroker.http.endpoint import STRING, Answer, Endpoint, Schema, json_answer_of
from kbroker.network.awaiting import settled

if TYPE_CHECKING:
    from kbroker.http.answers import Response
    from kbroker.http.request import HttpRequest

_FRESH = {"cache-control": "no-store"}


async def alive(request: HttpRequest) -> Response:
    return json_answer({"status": "alive"}, headers=_FRESH)


async def ready(request: HttpRequest) -> Response:
    problems = await settled(request.broker.health.readiness())
    well = not any(problems.values())
    return json_answer(
        {
            "status": "ready" if well else "not ready",
            "checks": {
                name: {"ok": True} if problem is None else {"ok": False, "problem": problem}
                for name, problem in problems.items()
            },
        },
        200 if well else 503,
        _FRESH,
    )


_STATUS: Schema = {"type": "object", "required": ["status"], "properties": {"status": STRING}}
_CHECK: Schema = {
    "type": "object",
    "required": ["ok"],
    "properties": {"ok": {"type": "boolean"}, "problem": STRING},
}
_READINESS: Schema = {
    "type": "object",
    "required": ["status", "checks"],
    "properties": {"status": STRING, "checks": {"type": "object", "additionalProperties": _CHECK}},
}
_TAG = "health"

ENDPOINTS = (
    Endpoint(
        "GET",
        "/healthz",
        alive,
        "Whether the broker is alive: it answers.",
        answers={200: json_answer_of("It is.", _STATUS)},
        public=True,
        tag=_TAG,
    ),
    Endpoint(
        "GET",
        "/readyz",
        ready,
        "Whether the broker may be sent work.",
        answers={
            200: json_answer_of("It may.", _READINESS),
            503: Answer("Not now; the checks say why.", {"application/json": _READINESS}),
        },
        public=True,
        tag=_TAG,
        description="`recovered`: its logs take records. `catalog`: it takes writes. `disk`: the data "
        "directory takes files. `draining`: it is not about to stop (`kbroker.drain.ms`).",
    ),
)
