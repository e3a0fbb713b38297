"""What is here: the first page of the HTTP API."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kbroker import __version__
from kbroker.http.answers import json_answer
from kbroker.http.endpoint import OBJECT, Endpoint, json_answer_of

if TYPE_CHECKING:
    from kbroker.http.answers import Response
    from kbroker.http.request import HttpRequest


async def root(request: HttpRequest) -> Response:
    return json_answer(
        {
            "name": "kbroker",
            "version": __version__,
            "clusterId": request.broker.cluster.cluster_id,
            "api": f"{request.base_url}/api/v1",
            "document": f"{request.base_url}/openapi.json",
            "docs": f"{request.base_url}/docs",
        }
    )


ENDPOINTS = (
    Endpoint(
        "GET",
        "/",
        root,
        "What this is, and where to read on.",
        answers={200: json_answer_of("Name, version, cluster id and links.", OBJECT)},
        tag="cluster",
    ),
)
